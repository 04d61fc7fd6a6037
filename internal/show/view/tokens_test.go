package view

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

// delay is a median in seconds.
func streamed(m mode.Name, to mode.Target, delay, ratio float64, v stats.Verdict) analysis.Cell {
	c := row(m, mode.FromHost, to, "rr", delay, ratio, 0.1, v)
	c.Load = "stream"
	set := func(name string, x float64) {
		merged := x
		c.Metrics[name] = analysis.Metric{Median: x, Merged: &merged}
	}
	set(workload.LatencyMax, 100*delay)
	set(workload.CPUPerToken, 60e-6)
	set(workload.TransitP50, delay/2)
	set(workload.LateP99, 41e-6)
	set(workload.FirstTokenP50, 2*delay)
	set(workload.FirstTokenP99, 8*delay)
	set(workload.GapP50, 0.02)
	set(workload.GapP99, 0.0212)
	set(workload.GapMax, 0.02+100*delay)
	set(workload.ResponseTime, 4+delay)
	set(workload.Glued, 0)
	set(workload.TokenRate, 49_900)
	return c
}

func TestStreamTable(t *testing.T) {
	r := head()
	r.Plan.Loads = []sample.Load{{Kind: "stream", Streams: 1000,
		Options: sample.StreamOptions{Tokens: 200, Pace: 50}, Nodelay: "off", Window: 4.1}}
	r.Control.Groups = []analysis.Floor{{From: "host", Load: "stream", On: "lab",
		Floor: map[string]float64{workload.LatencyP50: 0.0456}}}
	worst := streamed(mode.PublishProxy, mode.ToLoopback6, 12345e-6, 12.34, stats.Unclear)
	worst.LimitedBy = "softirq core"
	worst.Metrics[workload.Glued] = analysis.Metric{Median: 0.4625}
	tuned := streamed(mode.PublishProxy, mode.ToLoopback, 70e-6, 1.2, stats.Worse)
	tuned.Tune = "nodelay=off"
	none := streamed(mode.PublishNAT, mode.ToAddress, 70e-6, 1.1, stats.Same)
	none.Metrics = map[string]analysis.Metric{}
	r.Cells = []analysis.Cell{streamed(mode.Host, mode.ToLoopback, 62e-6, 1, ""),
		streamed(mode.Bridge, mode.ToContainer, 65e-6, 1.05, stats.Same), worst, tuned, none}
	out := table(t, r, format.Options{})
	golden(t, "stream.txt", out)
	for l := range strings.Lines(out) {
		if w := ansi.StringWidth(strings.TrimRight(l, "\n")); w > format.DefaultWidth {
			t.Errorf("%d columns: %s", w, l)
		}
	}
}
