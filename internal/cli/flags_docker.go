package cli

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type dockerFlags struct{ parent string }

// docker returns the flags that docker and podman share.
func (f *builderFlags) docker() *dockerFlags { return f.of[docker.Name].(*dockerFlags) }

func (f *dockerFlags) add(fl *pflag.FlagSet, _ commandKind) {
	both := []string{docker.Name, sample.Podman}
	add(fl, flagDef{name: "parent", group: where, value: text(&f.parent, ""), word: "CARD", of: both,
		help: "the network card for macvlan and ipvlan networks"})
}

func (f *dockerFlags) defaults(others []string) (*defaults, error) {
	if len(others) > 0 || docker.FindRootless() == nil {
		return nil, nil
	}
	return &defaults{modes: docker.Rootless(), here: true}, nil
}

func (f *dockerFlags) check() error { return nil }

func (f *dockerFlags) with(ctx context.Context, _ sample.Wire, use func(path.Builder) error) error {
	if entered, err := enterEngine(ctx, false); entered {
		return err
	}
	return closing(&docker.Docker{Parent: f.parent}, use)
}

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
