package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// mesh makes sweeps, and visits the pairs of a phase at once. It builds a path for each visit,
// because a mesh may have a million of them.
func (r *run) mesh(ctx context.Context) (reason string, err error) {
	b, err := builder(r.Builders, r.Plan.Mesh.On)
	if err != nil {
		return sample.EndedByFailure, err
	}
	var pairs []sample.PairVisit
	for {
		began := r.elapsed()
		for round := range plan.MeshRounds(r.Plan) {
			for i, phase := range plan.MeshRound(r.Plan, r.sweepsIn, round) {
				r.tellMesh(round, i, phase)
				visits := r.repeated(ctx, func() []sample.Visit {
					return r.phase(ctx, b, round, phase)
				})
				if ctx.Err() != nil {
					return sample.EndedByInterrupt, nil
				}
				for _, v := range visits {
					pairs = append(pairs, v.PairVisit())
					if err := r.Out.Visit(v.ForMesh(len(r.Plan.Mesh.Nodes))); err != nil {
						return sample.EndedByFailure, err
					}
				}
			}
			r.roundsIn++
		}
		r.sweepsIn++
		if reason := r.enoughSweeps(pairs, r.elapsed()-began); reason != "" {
			return reason, nil
		}
	}
}

func (r *run) enoughSweeps(pairs []sample.PairVisit, took float64) string {
	if n := r.Plan.Mesh.Sweeps; n > 0 {
		if r.sweepsIn >= n {
			return sample.EndedByRounds
		}
		return ""
	}
	alive := false
	for _, v := range pairs {
		alive = alive || v.Sweep == r.sweepsIn-1 && v.Failure == ""
	}
	switch {
	case !alive:
		return sample.EndedByFailure
	case r.sweepsIn >= plan.MinSweeps && r.MeshConverged != nil && r.MeshConverged(r.Plan, pairs):
		return sample.EndedByPrecision
	case r.sweepsIn >= r.Plan.MaxSweeps():
		return sample.EndedBySize
	case r.elapsed()+took > r.Plan.Budget:
		return sample.EndedByBudget
	}
	return ""
}

func (r *run) phase(ctx context.Context, b path.Builder, round int,
	phase plan.Phase) []sample.Visit {
	out := make([]sample.Visit, len(phase.Pairs))
	all := newBarrier(r.Clock, len(phase.Pairs))
	var wg sync.WaitGroup
	for i, pair := range phase.Pairs {
		out[i] = sample.Visit{Turn: r.turn(round, 0)}
		out[i].PairTurn = sample.PairTurn{Sweep: r.sweepsIn, Pair: pair, Load: phase.Load.Kind,
			Beside: phase.Beside}
		wg.Go(func() {
			if err := r.visitPair(ctx, b, phase.Load, &out[i], all); err != nil {
				r.notice(err)
				out[i].Failure = path.OneLine(err)
				if left := (*path.LeftError)(nil); errors.As(err, &left) {
					out[i].Left = left.Node
				}
			}
		})
	}
	wg.Wait()
	return out
}

// visitPair builds a path, visits it and closes it. If it fails before the barrier, it cleans up
// before it leaves the barrier, because its clean-up also uses the channel.
func (r *run) visitPair(ctx context.Context, b path.Builder, l sample.Load, v *sample.Visit,
	all *barrier) (err error) {
	came := false
	defer func() {
		if !came {
			all.leave()
		}
	}()
	nodes := r.Plan.Mesh.Nodes
	spec, err := MeshSpec(mode.Name(r.meshMode(v.Beside)))
	if err != nil {
		return err
	}
	spec.Client, spec.Server = nodes[v.Pair[0]].Name, nodes[v.Pair[1]].Name
	p, err := b.Build(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(blame(err, p, spec), p.Close()) }()
	return r.measureBeside(ctx, p, l, sample.Shape{}, v,
		func(ctx context.Context, far *distant, n needs) (int64, func(), error) {
			came = true
			return all.begin(ctx, far, n)
		})
}

func (r *run) meshMode(beside bool) string {
	if beside {
		return r.Plan.Mesh.Beside
	}
	return r.Plan.Mesh.Mode
}

// blame wraps err in a *path.LeftError if the machine of one of the nodes is gone.
func blame(err error, p *path.Path, spec path.Spec) error {
	gone := func(m path.Machine) bool { return m != nil && m.Err() != nil }
	switch {
	case err == nil:
		return nil
	case gone(p.Clients[0].Machine):
		return &path.LeftError{Node: spec.Client, Err: err}
	case gone(p.Servers[0].Machine):
		return &path.LeftError{Node: spec.Server, Err: err}
	}
	return err
}

// MeshSpec returns the path between two nodes in a mode: from the other machine or, if the mode has
// no such route or is of pods, from a container there.
func MeshSpec(name mode.Name) (path.Spec, error) {
	m, _ := mode.Find(name)
	from := []mode.Placement{mode.FromRemote, mode.FromRemoteContainer}
	if m.Kubernetes {
		slices.Reverse(from)
	}
	for _, from := range from {
		if routes := m.RoutesFrom(from); len(routes) > 0 {
			return path.Spec{Mode: name, From: from, To: routes[0].To}, nil
		}
	}
	return path.Spec{}, &machine.UnsupportedError{
		Missing: string(name) + " has no path between machines",
		Remedy:  "--mode " + string(mode.Host) + " or " + string(mode.Overlay)}
}

func (r *run) tellMesh(round, i int, phase plan.Phase) {
	if r.Progress == nil {
		return
	}
	total := plan.SweepTime(r.Plan) * float64(max(1, r.Plan.Mesh.Sweeps))
	if r.Plan.Mesh.Sweeps == 0 {
		total = max(total, r.Plan.Budget)
	}
	r.Progress(Progress{Sweep: r.sweepsIn, Round: round, Rounds: plan.MeshRounds(r.Plan), Visit: i,
		Visits: r.Plan.VisitsOfPair(),
		Cell: sample.Cell{Mode: mode.Name(r.meshMode(phase.Beside)), Load: phase.Load.Kind,
			On: r.Plan.Mesh.On},
		Pairs:   len(phase.Pairs),
		Elapsed: r.elapsed(), Total: total})
}
