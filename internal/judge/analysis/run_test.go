package analysis

import (
	"math"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/judgetest"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const tripsPerVisit = judgetest.TripsPerVisit

var (
	cell     = judgetest.Cell
	hostCell = judgetest.HostCell
	control  = judgetest.Control
	trio     = judgetest.Trio
	steady   = judgetest.Steady
	noisy    = judgetest.Noisy
)

// run is a results file that is judged in a chain.
type run struct {
	*judgetest.Run
	t *testing.T
	f *sample.File
}

func newRun(t *testing.T, cells ...sample.Cell) *run {
	t.Helper()
	r := judgetest.New(t, cells...)
	return &run{r, t, r.File}
}

func (r *run) visit(round, cell int, x float64, change ...func(*sample.Visit)) {
	r.t.Helper()
	r.Visit(round, cell, x, change...)
}

func (r *run) rounds(n int, value func(round, cell int) float64, change ...func(*sample.Visit)) *run {
	r.t.Helper()
	r.Rounds(n, value, change...)
	return r
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
