package view

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

// usualOnTwoCPUs is what a bare toll measures on a machine with two CPUs.
func usualOnTwoCPUs() *analysis.Report {
	r := sideways()
	r.Cells = nil
	at := func(pin string, c analysis.Cell, price float64) {
		c.Pin = pin
		if m := c.Metrics[workload.LatencyP50]; c.Load == workload.RR && m.Ratio != nil {
			m.Price = &analysis.Price{Unit: "s", Median: price * 1e-6, Low: (price - 0.2) * 1e-6,
				High: (price + 0.3) * 1e-6, N: 40, Verdict: stats.Costs}
			c.Metrics[workload.LatencyP50] = m
		}
		r.Cells = append(r.Cells, c)
	}
	rows := []struct {
		mode  mode.Name
		to    mode.Target
		ratio float64
		price float64
		v     stats.Verdict
	}{{mode.Host, mode.ToLoopback, 1, 0, ""},
		{mode.Native, mode.ToLoopback, 1.12, -0.9, stats.Better},
		{mode.Bridge, mode.ToContainer, 0.91, 1, stats.Unclear},
		{mode.PublishNAT, mode.ToLoopback, 0.87, 1.4, stats.Worse},
		{mode.PublishNAT, mode.ToAddress, 0.86, 1.4, stats.Worse},
		{mode.PublishProxy, mode.ToLoopback6, 0.44, 11, stats.Worse},
		{mode.PublishProxy, mode.ToLoopback, 0.41, 11.9, stats.Worse}}
	for _, pin := range []string{sample.PinFar, sample.PinNear} {
		for _, x := range rows {
			at(pin, bulk(x.mode, x.to, 50*x.ratio, x.ratio, 0.02, x.v), 0)
		}
		for _, x := range rows {
			if x.v == stats.Unclear {
				x.v = stats.Same
			}
			at(pin, trip(x.mode, x.to, 50+x.price, 1+x.price/50, 0.01, x.v), x.price)
		}
	}
	r.Warnings = []analysis.Warning{{Code: "other-load", Text: "something else kept 0.2 CPUs busy"},
		{Code: "paced", Text: "TCP's congestion control here is bbr"}}
	r.Found = ofCells(r)
	return r
}

const terminalLines = 24

func TestFirstAnswerFitsOneScreen(t *testing.T) {
	r := usualOnTwoCPUs()
	got := summary(t, r, format.Options{Width: 80})
	golden(t, "summary-first.txt", got)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if prompt := 1; len(lines)+prompt > terminalLines {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > 80 {
			t.Errorf("%d columns: %q", w, l)
		}
	}
	whole(t, Summary(r), got)
}

// On a machine that paces, the rows without pacing are in the details only.
func TestUnpacedRowsAreDetails(t *testing.T) {
	r := usualOnTwoCPUs()
	r.Plan.Unpaced = "congestion=reno"
	for _, c := range r.Cells[:3] {
		c.Tune = mode.Tunes(r.Plan.Unpaced)
		r.Cells = append(r.Cells, c)
		r.Failed = append(r.Failed, analysis.Failed{Cell: c.Cell, Reason: "it was too busy"})
	}
	if !r.Complete() {
		t.Error("a row that nobody asked for makes the run incomplete")
	}
	short := strings.Join(strings.Fields(summary(t, r, format.Options{Width: 80})), " ")
	long := written(t, "table", Report(r), format.Options{Width: 100})
	if strings.Contains(short, "reno") || strings.Contains(short, "Failed") ||
		!strings.Contains(short, "every row with a result was witnessed") || !slices.Contains(strings.Fields(long),
		"bridge+congestion=reno") {
		t.Errorf("the summary is\n%s\nthe report is\n%s", short, long)
	}
}

// Each cell has a verdict of its own, and the key has all marks that the cells have.
func TestEachCellHasOneVerdict(t *testing.T) {
	r := usualOnTwoCPUs()
	s := overview(r)[0]
	table := s.Blocks[0].(document.Table)
	marks := map[string]bool{}
	for _, row := range table.Rows {
		for i, c := range row.Cells {
			if table.Columns[i].Spare || c.Number == nil || c.Number.Verdict == "" {
				continue
			}
			mark := analysis.Ratio{Verdict: stats.Verdict(c.Number.Verdict), N: 2}.Mark()
			if got := strings.TrimLeft(c.Text, "+-.0123456789 ±×"); got != mark {
				t.Errorf("%s: %q has the verdict %q", row.Cells[0].Text, c.Text, c.Number.Verdict)
			}
			marks[mark] = true
		}
	}
	if head := table.Columns[1].Head[1]; head != "own CPUs" {
		t.Errorf("head %q", head)
	}
	const want = "± 95 % interval; = the same within 3 %; ? unclear; own CPUs: client and server have " +
		"one each, as on an idle machine; one CPU: they share it, as on a busy machine"
	if got := key(r); got != want {
		t.Errorf("key %q, want %q", got, want)
	}
	if d := cmp.Diff(map[string]bool{"": true, "=": true, "?": true}, marks); d != "" {
		t.Error(d)
	}
}

// Levels agree with the differences beside them. The details have the rows' own medians.
// An interval that tells nothing is not printed.
func TestHopelessIntervals(t *testing.T) {
	c := trip(mode.Bridge, mode.ToContainer, 50, 1.16, 0.4, stats.Unclear)
	m := c.Metrics[workload.LatencyP50]
	m.Ratio.N = 40
	m.Price = &analysis.Price{Unit: "s", Median: 8e-6, Low: -12e-6, High: 28e-6, N: 40,
		Verdict: stats.Unclear}
	c.Metrics[workload.LatencyP50] = m
	for _, wide := range []bool{false, true} {
		want := "+8 ±20 ?"
		if wide {
			m.Ratio.Low, m.Ratio.High, m.Price.Low, m.Price.High, want = 0, 200, -50e-6, 1e-2, "?"
		}
		if got := fieldCell(c, true, "µs", "µs", 1e6).Text; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLevelsAgreeWithDifferences(t *testing.T) {
	r := usualOnTwoCPUs()
	for _, c := range r.Cells {
		if m := c.Metrics[c.Primary]; m.Ratio != nil {
			m.Level = 60e9 * m.Ratio.Median
			c.Metrics[c.Primary] = m
		}
	}
	const row, level = 2, 2
	table := overview(r)[0].Blocks[0].(document.Table)
	if got := table.Rows[row].Cells[level].Text; got != "54.6" {
		t.Errorf("bridge, 91 %% of 60 Gbit/s, has %s", got)
	}
	cells := groups(r.Cells)[0]
	whole := tableOf(columnsFor(r, cells), cells, nil)
	if got := whole.Rows[row].Cells[level].Text; got != "45.5" {
		t.Errorf("in the details bridge's median is %s", got)
	}
}

// Rounds that differ by less than a per cent do not look like all and nothing.
func TestBarsOfSteadyRounds(t *testing.T) {
	r := usualOnTwoCPUs()
	c := r.Cells[2]
	m := c.Metrics[c.Primary]
	m.Rounds = []float64{100e9, 100.4e9, 100.2e9}
	c.Metrics[c.Primary] = m
	base := r.Cells[0].Metrics[c.Primary]
	base.Rounds = []float64{100e9, 100e9, 100.1e9}
	r.Cells[0].Metrics[c.Primary] = base
	table := strip(r, c).Blocks[0].(document.Table)
	for _, row := range table.Rows {
		if low := strings.Trim(row.Cells[1].Text, "▇█"); low != "" {
			t.Errorf("%s: %s", row.Cells[0].Text, row.Cells[1].Text)
		}
	}
}

// The baseline is the first row also if its first load has no result.
func TestBaselineIsFirstWithoutItsFirstLoad(t *testing.T) {
	r := usualOnTwoCPUs()
	first := fieldOf(r.Cells[0])
	r.Cells = slices.DeleteFunc(r.Cells, func(c analysis.Cell) bool {
		return c.Baseline && fieldOf(c) == first
	})
	table := overview(r)[0].Blocks[0].(document.Table)
	if got := table.Rows[0].Cells[0].Text; got != r.Plan.Baseline {
		t.Errorf("the first row is %s", got)
	}
}
