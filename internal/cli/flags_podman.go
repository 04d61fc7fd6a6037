package cli

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// podmanFlags has no flags of its own; it uses docker's.
type podmanFlags struct{ all *builderFlags }

func (f *podmanFlags) add(*pflag.FlagSet, commandKind) {}

func (f *podmanFlags) defaults(others []string) (*defaults, error) {
	if len(others) > 0 || docker.FindRootlessPodman() == 0 {
		return nil, nil
	}
	return &defaults{modes: docker.RootlessPodman(), here: true}, nil
}

func (f *podmanFlags) check() error { return nil }

func (f *podmanFlags) with(ctx context.Context, _ sample.Wire, use func(path.Builder) error) error {
	if entered, err := enterEngine(ctx, true); entered {
		return err
	}
	return closing(&docker.Docker{Podman: true, Parent: f.all.docker().parent}, use)
}

// enterEngine runs toll again in the user namespace of this environment's Docker Engine or Podman,
// if that is rootless and toll may enter its containers only there. If entered is true, err is that
// run's.
func enterEngine(ctx context.Context, podman bool) (entered bool, err error) {
	pid := docker.UserNamespace(podman)
	if pid == 0 || lab.Entered() || rootless.Entered() {
		return false, nil
	}
	if podman { // as root there, toll would use root's service
		if err := os.Setenv("CONTAINER_HOST", dockerapi.FindPodman(os.Getenv)); err != nil {
			return true, err
		}
	}
	code, err := rootless.Enter(ctx, pid, signalOf)
	return true, resultOf(code, err)
}
