// Package judgetest builds results files with known numbers, for the tests of the judging packages.
package judgetest

import (
	"math"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Run builds a results file with known numbers. Every window lasts a second, on a machine of two
// CPUs: one is half busy, the other 0.3.
type Run struct {
	T    testing.TB
	File *sample.File
}

// Cell returns a cell of the lab.
func Cell(m mode.Name, from mode.Placement, to mode.Target, load string) sample.Cell {
	return sample.Cell{Mode: m, From: from, To: to, Load: load, On: "lab"}
}

// HostCell returns a mode's cell from the host, at its first target.
func HostCell(m mode.Name, load string) sample.Cell {
	found, _ := mode.Find(m)
	to := mode.ToLoopback
	if routes := found.RoutesFrom(mode.FromHost); len(routes) > 0 {
		to = routes[0].To
	}
	return Cell(m, mode.FromHost, to, load)
}

// Control returns the control of a baseline.
func Control(c sample.Cell) sample.Cell {
	c.Control = true
	return c
}

// Trio returns a group with a baseline, its control and one mode.
func Trio(m mode.Name, load string) []sample.Cell {
	base := HostCell(mode.Host, load)
	return []sample.Cell{base, Control(base), HostCell(m, load)}
}

// New returns a run of the cells without visits.
func New(t testing.TB, cells ...sample.Cell) *Run {
	t.Helper()
	r := &Run{T: t, File: &sample.File{
		Header: sample.Header{Schema: sample.Schema,
			Plan: sample.Plan{Study: sample.StudyCompare, Seed: 1, Budget: 60, Precision: 0.02,
				Baseline: string(mode.Host),
				Loads: []sample.Load{
					{Kind: "bulk", Streams: 1, Warmup: 0.1, Window: 1},
					{Kind: "rr", Options: sample.RROptions{
						Messages: sample.Messages{Request: 1, Reply: 1}}, Warmup: 0.05, Window: 1},
				},
				Cells: cells}},
		End: sample.End{Reason: sample.EndedByRounds, Elapsed: 12},
	}}
	for _, c := range cells {
		m, ok := mode.Find(c.Mode)
		if !ok || c.Control {
			continue
		}
		p := sample.Path{Mode: c.Mode, From: c.From, To: c.To, Tune: c.Tune, On: c.On}
		route, _ := m.Route(c.From, c.To)
		for _, h := range route.Hops {
			p.Hops = append(p.Hops, string(h))
		}
		r.File.Header.Paths = append(r.File.Header.Paths, p)
	}
	return r
}

// TripsPerVisit is the number of round trips in a visit of rr.
const TripsPerVisit = 2000

// Visit adds a good visit: x is Gbit/s for bulk and µs for rr.
func (r *Run) Visit(round, cell int, x float64, change ...func(*sample.Visit)) {
	r.T.Helper()
	v := sample.Visit{Turn: sample.Turn{Round: round, Cell: cell},
		Ends: sample.Ends{Client: sample.Party{
			Window: 1, CPU: 0.4, BusiestCPU: 0.4, CPUs: []int{0}},
			Server: sample.Party{Window: 1, CPU: 0.2, BusiestCPU: 0.2, CPUs: []int{1}}},
		Metered: sample.Metered{Elapsed: 1, Machine: []sample.CPU{
			{User: 0.1, System: 0.4, Idle: 0.5}, {System: 0.2, SoftIRQ: 0.1, Idle: 0.7}}},
		Proof: sample.Proof{Witness: sample.Witness{OK: true}}}
	switch r.File.Header.Plan.Cells[cell].Load {
	case "rr":
		h := sample.NewHistogram()
		if err := h.RecordValues(int64(x*float64(time.Microsecond)), TripsPerVisit); err != nil {
			r.T.Fatal(err)
		}
		e, err := sample.Encode(h)
		if err != nil {
			r.T.Fatal(err)
		}
		v.Latency, v.Client.Trips = e, TripsPerVisit
	default:
		bytes := int64(x * 1e9 / 8)
		v.Client.Sent, v.Server.Received = bytes, bytes
	}
	for _, f := range change {
		f(&v)
	}
	r.File.Visits = append(r.File.Visits, v)
}

// Rounds visits every cell n times; value gives each visit's x.
func (r *Run) Rounds(n int, value func(round, cell int) float64,
	change ...func(*sample.Visit)) *Run {
	r.T.Helper()
	for round := range n {
		for c := range r.File.Header.Plan.Cells {
			r.Visit(round, c, value(round, c), change...)
		}
	}
	r.File.End.Rounds = n
	return r
}

// Steady returns values for the cells, the same in every round.
func Steady(xs ...float64) func(round, cell int) float64 {
	return func(_, cell int) float64 { return xs[cell] }
}

// Noisy does what Steady does, but in every second round each cell is off by its share.
func Noisy(share []float64, xs ...float64) func(round, cell int) float64 {
	return func(round, cell int) float64 {
		return xs[cell] * (1 + share[cell]*float64(round%2*2-1))
	}
}

// Find returns the first cell of m under load in a report.
func Find(t *testing.T, r *analysis.Report, m mode.Name, load string) analysis.Cell {
	t.Helper()
	for _, c := range r.Cells {
		if c.Mode == m && c.Load == load {
			return c
		}
	}
	t.Fatalf("no cell %s %s among %d", m, load, len(r.Cells))
	return analysis.Cell{}
}

// Near reports whether a and b differ by at most a thousandth, like histograms with three digits.
func Near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Abs(b) }

// Found returns the values of the first warning with the code.
func Found(t *testing.T, ws []analysis.Warning, code string) analysis.Finding {
	t.Helper()
	for _, w := range ws {
		if w.Code == code && w.Found != nil {
			return *w.Found
		}
	}
	t.Fatalf("no %s among the warnings %+v", code, ws)
	return analysis.Finding{}
}

// Codes returns the warnings' codes, in order.
func Codes(ws []analysis.Warning) []string {
	out := []string{}
	for _, w := range ws {
		out = append(out, w.Code)
	}
	return out
}
