package analysis

import (
	"math"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// run builds a results file with known numbers: every window lasts a second,
// on a machine of two CPUs of which one is half and the other 0.3 busy.
type run struct {
	t *testing.T
	f *sample.File
}

func cell(m mode.Name, from mode.Placement, to mode.Target, load string) sample.Cell {
	return sample.Cell{Mode: string(m), From: string(from), To: string(to), Load: load, On: "lab"}
}

// hostCell is a mode's cell from the host, at the first target that it has.
func hostCell(m mode.Name, load string) sample.Cell {
	found, _ := mode.Find(m)
	to := mode.ToLoopback
	if routes := found.RoutesFrom(mode.FromHost); len(routes) > 0 {
		to = routes[0].To
	}
	return cell(m, mode.FromHost, to, load)
}

func control(c sample.Cell) sample.Cell {
	c.Control = true
	return c
}

// trio is a group with a baseline, its control and one mode.
func trio(m mode.Name, load string) []sample.Cell {
	base := hostCell(mode.Host, load)
	return []sample.Cell{base, control(base), hostCell(m, load)}
}

func newRun(t *testing.T, cells ...sample.Cell) *run {
	t.Helper()
	r := &run{t: t, f: &sample.File{
		Header: sample.Header{Schema: sample.Schema, Plan: sample.Plan{Seed: 1, Budget: 60, Precision: 0.02, Baseline: string(mode.Host),
			Loads: []sample.Load{
				{Kind: "bulk", Streams: 1, Warmup: 0.1, Window: 1},
				{Kind: "rr", Request: 1, Reply: 1, Warmup: 0.05, Window: 1},
			},
			Cells: cells}},
		End: sample.End{Reason: sample.EndedByRounds, Elapsed: 12},
	}}
	for _, c := range cells {
		m, ok := mode.Find(mode.Name(c.Mode))
		if !ok || c.Control {
			continue
		}
		p := sample.Path{Mode: c.Mode, From: c.From, To: c.To, Tune: c.Tune, On: c.On}
		route, _ := m.Route(mode.Placement(c.From), mode.Target(c.To))
		for _, h := range route.Hops {
			p.Hops = append(p.Hops, string(h))
		}
		r.f.Header.Paths = append(r.f.Header.Paths, p)
	}
	return r
}

// tripsPerVisit is how many round trips a visit of rr has.
const tripsPerVisit = 2000

// visit adds a good visit: x is Gbit/s for bulk and µs for rr.
func (r *run) visit(round, cell int, x float64, change ...func(*sample.Visit)) {
	r.t.Helper()
	v := sample.Visit{Round: round, Cell: cell, Elapsed: 1, Witness: sample.Witness{OK: true},
		Client:  sample.Party{Window: 1, CPU: 0.4, BusiestCPU: 0.4, CPUs: []int{0}},
		Server:  sample.Party{Window: 1, CPU: 0.2, BusiestCPU: 0.2, CPUs: []int{1}},
		Machine: []sample.CPU{{User: 0.1, System: 0.4, Idle: 0.5}, {System: 0.2, SoftIRQ: 0.1, Idle: 0.7}}}
	switch r.f.Header.Plan.Cells[cell].Load {
	case "rr":
		h := sample.NewHistogram()
		if err := h.RecordValues(int64(x*float64(time.Microsecond)), tripsPerVisit); err != nil {
			r.t.Fatal(err)
		}
		e, err := sample.Encode(h)
		if err != nil {
			r.t.Fatal(err)
		}
		v.Latency, v.Client.Trips = e, tripsPerVisit
	default:
		bytes := int64(x * 1e9 / 8)
		v.Client.Sent, v.Server.Received = bytes, bytes
	}
	for _, f := range change {
		f(&v)
	}
	r.f.Visits = append(r.f.Visits, v)
}

// rounds visits every cell n times; value gives each visit's x.
func (r *run) rounds(n int, value func(round, cell int) float64, change ...func(*sample.Visit)) *run {
	r.t.Helper()
	for round := range n {
		for c := range r.f.Header.Plan.Cells {
			r.visit(round, c, value(round, c), change...)
		}
	}
	r.f.End.Rounds = n
	return r
}

// steady is a value for each cell, the same in every round.
func steady(xs ...float64) func(round, cell int) float64 {
	return func(_, cell int) float64 { return xs[cell] }
}

// noisy is steady, but every second round the cell is off by its share.
func noisy(share []float64, xs ...float64) func(round, cell int) float64 {
	return func(round, cell int) float64 { return xs[cell] * (1 + share[cell]*float64(round%2*2-1)) }
}

func (r *run) judge() *Report { return Judge(r.f) }

// find is the cell of m under load; the first if it has several.
func find(t *testing.T, r *Report, m mode.Name, load string) Cell {
	t.Helper()
	for _, c := range r.Cells {
		if c.Mode == string(m) && c.Load == load {
			return c
		}
	}
	t.Fatalf("no cell %s %s among %d", m, load, len(r.Cells))
	return Cell{}
}

// near is true if a and b differ by no more than a thousandth, as histograms
// with three digits do.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Abs(b) }

func codes(ws []Warning) []string {
	out := []string{}
	for _, w := range ws {
		out = append(out, w.Code)
	}
	return out
}
