package cli

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
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
