package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// MeshRequest is a request for a mesh.
type MeshRequest struct {
	Nodes  []sample.Node // at least two, of different names
	Mode   mode.Name     // of the containers; "": host
	Beside mode.Name     // a second mode for every visit; "": none
	Labels []string      // keys of the nodes' labels
	// NotWitnessed names the hops of Mode's path that cannot be read, and why.
	NotWitnessed string
	On           string        // the backend
	Loads        []sample.Load // rr, bulk or both
	Sweeps       int           // 0: until Precision or Budget
	AtOnce       int           // most pairs at a time; 0: a whole round's
	Budget       float64       // seconds
	Precision    float64       // relative
	Pin          string
	Seed         uint64
}

// MinSweeps is the number of sweeps before precision can end a mesh.
const MinSweeps = 5

// meshOverhead estimates a visit's time (s) beyond warm-up and window between machines.
const meshOverhead = 0.25

// Mesh plans a mesh. The plan has no cells: see MeshRounds and MeshRound.
func Mesh(r MeshRequest) (sample.Plan, error) {
	r.Mode = cmp.Or(r.Mode, mode.Host)
	p := sample.Plan{Study: sample.StudyMesh, Seed: r.Seed, Budget: r.Budget,
		Precision: r.Precision, Pin: r.Pin, Loads: r.Loads, Cells: []sample.Cell{},
		Mesh: &sample.Mesh{Nodes: r.Nodes, Mode: string(r.Mode), Beside: string(r.Beside),
			Labels: r.Labels, NotWitnessed: r.NotWitnessed, On: r.On, Sweeps: r.Sweeps,
			AtOnce: r.AtOnce}}
	if err := r.check(); err != nil {
		return p, err
	}
	like := Request{From: []mode.Placement{mode.FromRemote}, On: []string{r.On}, Loads: r.Loads,
		Rounds: r.Sweeps, Budget: r.Budget, Precision: r.Precision}
	if err := like.check(); err != nil {
		return p, err
	}
	if most := p.MaxSweeps(); r.Sweeps > most {
		return p, refuse(fmt.Sprintf("--rounds %d, or fewer nodes or loads", most),
			"--rounds %d: a results file holds at most %d sweeps of %d nodes", r.Sweeps, most,
			len(r.Nodes))
	}
	return p, nil
}

func (r MeshRequest) check() error {
	switch n := len(r.Nodes); {
	case r.On == "":
		return errors.New("a mesh without a backend")
	case n < 2:
		return fmt.Errorf("a mesh needs at least two nodes, not %d", n)
	case n > sample.MaxNodes:
		return fmt.Errorf("%d nodes: at most %d can be measured", n, sample.MaxNodes)
	case r.Beside != "" && r.Beside == r.Mode:
		return fmt.Errorf("mode %s cannot be compared with itself", r.Mode)
	case r.Sweeps < 0:
		return fmt.Errorf("%d sweeps: must not be negative", r.Sweeps)
	case r.AtOnce < 0:
		return fmt.Errorf("%d pairs at once: must not be negative", r.AtOnce)
	}
	names := map[string]bool{}
	for _, n := range r.Nodes {
		if n.Name == "" || names[n.Name] {
			return fmt.Errorf("two nodes are called %q, or one has no name", n.Name)
		}
		names[n.Name] = true
	}
	kinds := map[string]bool{}
	for _, l := range r.Loads {
		if l.Kind != workload.RR && l.Kind != workload.Bulk || kinds[l.Kind] {
			return fmt.Errorf("load %s: a mesh takes rr and bulk, each once", l.Kind)
		}
		if workload.BulkOf(l).Reverse || workload.BulkOf(l).Bidir {
			return fmt.Errorf(
				"load %s: a mesh measures both directions anyway, one after the other", l.Kind)
		}
		kinds[l.Kind] = true
	}
	return nil
}

// Phase is one load over several pairs at once, the client of each first. No node is in two pairs.
type Phase struct {
	Load  sample.Load
	Pairs []sample.Pair
	// Beside selects the mesh's second mode.
	Beside bool
}

// MeshRounds returns the number of tournament rounds in a sweep of the plan.
func MeshRounds(p sample.Plan) int { return SweepRounds(len(p.Mesh.Nodes)) }

// MeshRound returns the phases of a tournament round of a sweep, both counted from 0, shuffled by
// the seed. Each pair is in one phase of each load, or in two, with client and server exchanged, if
// the load is measured both ways. With two modes each phase is made in both, in immediate
// succession and with alternating order.
func MeshRound(p sample.Plan, sweep, round int) []Phase {
	pairs := NewSweep(len(p.Mesh.Nodes), p.Seed, sweep).Round(round)
	back := make([]sample.Pair, len(pairs))
	for i, x := range pairs {
		back[i] = sample.Pair{x[1], x[0]}
	}
	var all []Phase
	for _, l := range p.Loads {
		all = append(all, Phase{Load: l, Pairs: pairs})
		if sample.BothWays(l.Kind) {
			all = append(all, Phase{Load: l, Pairs: back})
		}
	}
	const stream = 1 << 63 // apart from the schedule's
	rng := rand.New(rand.NewPCG(p.Seed^stream, uint64(sweep)<<32|uint64(round)))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = split(all, p.Mesh.AtOnce)
	if p.Mesh.Beside == "" {
		return all
	}
	// So each load and direction comes first in each mode equally often.
	both := make([]Phase, 0, len(all)+len(all))
	for i, ph := range all {
		ph.Beside = (i+round+sweep)%2 == 0
		both = append(both, ph)
		ph.Beside = !ph.Beside
		both = append(both, ph)
	}
	return both
}

// split returns phases of at most most pairs each. If most is 0, they stay unchanged.
func split(phases []Phase, most int) []Phase {
	if most <= 0 {
		return phases
	}
	var out []Phase
	for _, ph := range phases {
		for len(ph.Pairs) > most {
			out = append(out, Phase{Load: ph.Load, Pairs: ph.Pairs[:most]})
			ph.Pairs = ph.Pairs[most:]
		}
		out = append(out, ph)
	}
	return out
}

func meshRoundTime(p sample.Plan) float64 {
	t := 0.0
	pairs := len(p.Mesh.Nodes) / 2
	batches := 1
	if most := p.Mesh.AtOnce; most > 0 {
		batches = (pairs + most - 1) / most
	}
	for _, l := range p.Loads {
		visits := 1.0
		if sample.BothWays(l.Kind) {
			visits = 2
		}
		if p.Mesh.Beside != "" {
			visits += visits
		}
		t += visits * (l.Warmup + l.Window + meshOverhead)
	}
	return t * float64(batches)
}

// LeastTime estimates how long (s) a run takes to have a result.
func LeastTime(p sample.Plan) float64 {
	switch {
	case p.Mesh != nil:
		return float64(max(1, p.Mesh.Sweeps)) * SweepTime(p)
	}
	rounds := cmp.Or(p.Rounds, LeastRounds(p))
	return roundTime(p, FirstShare(p)) + float64(rounds-1)*RoundTime(p)
}

// SweepTime estimates a sweep of a mesh in seconds.
func SweepTime(p sample.Plan) float64 { return float64(MeshRounds(p)) * meshRoundTime(p) }
