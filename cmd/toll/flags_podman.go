package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// podmanFlags has docker's flags.
type podmanFlags struct{ all *builderFlags }

func (f *podmanFlags) add(fl *pflag.FlagSet, _ commandKind) {
	fl.AddFlagSet(f.all.own[docker.Name])
}

func (f *podmanFlags) defaults([]string) (*defaults, error) { return nil, nil }

func (f *podmanFlags) check() error { return nil }

func (f *podmanFlags) with(_ context.Context, _ sample.Wire, use func(path.Builder) error) error {
	d := f.all.docker()
	return closing(&docker.Docker{Podman: true, Parent: d.parent, KeepImage: d.keepImage}, use)
}
