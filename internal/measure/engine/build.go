package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func builder(all []path.Builder, name string) (path.Builder, error) {
	for _, b := range all {
		if b.Name() == name {
			return b, nil
		}
	}
	return nil, fmt.Errorf("unknown backend %q", name)
}

// NothingBuiltError means that no path could be built, and has the reasons.
type NothingBuiltError struct{ Err error }

func (e *NothingBuiltError) Error() string { return "no path could be built: " + e.Err.Error() }

func (e *NothingBuiltError) Unwrap() error { return e.Err }

// build builds the paths. It removes the cells of paths that cannot be built from the plan.
func (r *run) build(ctx context.Context) ([]sample.Path, error) {
	if r.Endpoints != nil {
		return r.Endpoints.Paths(), nil
	}
	if r.Plan.Mesh != nil {
		return nil, nil
	}
	out, failed, err := r.buildPaths(ctx, paths(r.Plan))
	switch {
	case err != nil:
		return nil, err
	case len(r.paths) == 0:
		return nil, &NothingBuiltError{errors.Join(slices.Collect(maps.Values(failed))...)}
	}
	r.Plan = plan.Drop(r.Plan, func(c sample.Cell) *sample.Skip {
		return skipFor(c, failed[keyOf(r.Plan, c)])
	})
	return out, nil
}

func (r *run) buildPaths(ctx context.Context, keys []key) (built []sample.Path,
	failed map[key]error, err error) {
	var mu sync.Mutex
	took := map[key]float64{}
	failed, err = each(keys, r.Builders, func(b path.Builder, k key) error {
		t := r.Clock.Now()
		p, err := b.Build(ctx, k.spec)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		r.paths[k], took[k] = p, time.Duration(r.Clock.Now()-t).Seconds()
		return nil
	})
	switch {
	case err != nil:
		return nil, nil, err
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	}
	for _, k := range keys {
		if r.paths[k] != nil {
			built = append(built, describe(k, r.paths[k], took[k]))
		}
	}
	return built, failed, nil
}

func describe(k key, p *path.Path, built float64) sample.Path {
	return sample.Path{Mode: k.spec.Mode, From: k.spec.From, To: k.spec.To,
		Tune:        k.spec.Tune,
		Servers:     k.spec.Servers,
		Clients:     k.spec.Clients,
		UDP:         k.spec.UDP,
		On:          k.on,
		Dial:        p.Clients[0].Dial.String(),
		Listen:      p.Servers[0].Listen.String(),
		Hops:        p.Kinds(),
		Built:       built,
		ProxyMemory: proxyMemory(p), Links: p.Links, Sysctls: p.Sysctls, Facts: p.Facts,
		Cards: p.Crosses}
}

func (r *run) cards() (out []sample.Card) {
	if r.Plan.Mesh != nil {
		return r.Plan.Mesh.Cards()
	}
	for _, k := range paths(r.Plan) {
		if r.paths[k] == nil {
			continue
		}
		for _, c := range r.paths[k].Cards {
			if !slices.ContainsFunc(out, func(o sample.Card) bool { return o.ID() == c.ID() }) {
				out = append(out, c)
			}
		}
	}
	return out
}
