package chart

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// A page has one figure for a mode's CPU time: the parties' sum is the median beside its ratio.
func TestOneFigureForCPUTime(t *testing.T) {
	r := comparison(t).Base()
	seen := 0
	for _, c := range r.Cells {
		w := workload.Of(r.LoadAt(c))
		m, ok := c.Metrics[w.CPU()]
		all := c.CPU.Client + c.CPU.Server + c.CPU.Proxy + c.CPU.Rest
		if !ok || all <= 0 {
			continue
		}
		seen++
		if all == m.Shown() {
			t.Logf("%s %s agrees by itself", c.Name(), c.Load)
		}
		got := parties(c, w)
		sum := got.Client + got.Server + got.Proxy + got.Rest
		if d := sum/m.Shown() - 1; d > 1e-9 || d < -1e-9 {
			t.Errorf("%s %s: the parties have %g, the chart above %g", c.Name(), c.Load, sum,
				m.Shown())
		}
	}
	if seen == 0 {
		t.Error("no cell has CPU time")
	}
}

func TestAddedTimesHaveAUnitThatFits(t *testing.T) {
	for want, p := range map[string]analysis.Price{
		"+360.9 ±0.7 ms": {Unit: "s", Median: 0.360895, Low: 0.360503, High: 0.361567, N: 9,
			Verdict: stats.Costs},
		"≤ 37 ms": {Unit: "s", Median: -18e-3, Low: -36.187e-3, High: 13e-3, N: 9,
			Verdict: stats.Nothing},
		"≤ 3 µs": {Unit: "s", Median: 1e-6, Low: -1e-6, High: 2.5e-6, N: 9,
			Verdict: stats.Nothing},
		"+1.8 ±0.3 µs": {Unit: "s", Median: 1.8e-6, Low: 1.5e-6, High: 2.1e-6, N: 9,
			Verdict: stats.Costs},
	} {
		c := analysis.Cell{Cell: sample.Cell{Mode: "bridge"}, Metrics: map[string]analysis.Metric{}}
		m := analysis.Metric{Unit: "s", Median: 1, Rounds: []float64{1, 1}, Price: &p,
			Ratio: &analysis.Ratio{To: "host", Median: 2, Low: 1.9, High: 2.1, N: 9}}
		if row, entry := ratioRow(c, m, scale{1, "s"}); row.More != want ||
			!slices.Contains(entry, want) {
			t.Errorf("%q, want %q", row.More, want)
		}
	}
}
