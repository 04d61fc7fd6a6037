// Package recipe is shared by backends that build paths by a recipe for each mode. It has the
// runner, which assembles the hops and removes the path after a failure, and the ends.
//
// A recipe is a function on the backend's site. It makes the containers, places the ends, and adds
// the path's guards. The hops and their order are those of the catalogue's route: Build asks the
// site for the hop of each kind and place. On a cluster, whose plug-in decides, the recipe sets the
// hops, and Build compares them with the catalogue.
package recipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

type ground interface {
	// Finish completes the path after the recipe. It sets the servers that clients dial, the
	// devices and settings for the results, and the functions that drain and inspect.
	Finish() error
}

// assembler is the site of a backend that finds the path's hops by their places on a route.
type assembler interface {
	// Hops returns the hops at a place, or nil if the path has none there. It is not called for the
	// hops that the recipe gave, or for the devices of the containers in Ends.
	Hops(At) []path.Hop
	assemble(ways []mode.Route, rest func(At) []path.Hop) ([]path.Hop, error)
}

// Build builds a path: begin makes the site, and recipe the mode's part. If anything fails, or if
// the path differs from the catalogue's, Build runs the path's Undo. recipe is nil if the backend
// lacks the mode.
func Build[S ground](ctx context.Context, spec path.Spec, recipe func(S) error,
	begin func(*path.Path) (S, error)) (*path.Path, error) {
	m, _ := mode.Find(spec.Mode)
	ways := m.RoutesTo(spec.From, spec.To)
	if recipe == nil || ways == nil {
		return nil, fmt.Errorf("build %s: %w", spec, machine.ErrUnsupported)
	}
	p := &path.Path{Spec: spec, Sysctls: map[string]string{}, Facts: map[string]string{}}
	s, err := begin(p)
	if err != nil { // begin does what all modes share, so its error does not name the mode
		return nil, errors.Join(err, p.Close())
	}
	if err := run(ctx, p, s, recipe, ways); err != nil {
		return nil, errors.Join(fmt.Errorf("build %s: %w", spec, err), p.Close())
	}
	p.MarkBehindTap()
	for i := range p.Clients {
		got := p.Route(i)
		if !m.Fits(spec.From, spec.To, got.Hops) {
			return nil, errors.Join(fmt.Errorf("built %s, the catalogue says %s", got, ways[0]),
				p.Close())
		}
	}
	return p, nil
}

func run[S ground](ctx context.Context, p *path.Path, s S, recipe func(S) error,
	ways []mode.Route) (err error) {
	if err := recipe(s); err != nil {
		return err
	}
	if a, ok := any(s).(assembler); ok {
		if p.Hops, err = a.assemble(ways, a.Hops); err != nil {
			return err
		}
	}
	if err := s.Finish(); err != nil {
		return err
	}
	return ctx.Err()
}
