package judgetest

import (
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Judged returns a cell from the host with a ratio of its primary metric, or the baseline if v is
// "".
func Judged(m mode.Name, to mode.Target, load string, ratio, half float64,
	v stats.Verdict) analysis.Cell {
	primary := analysis.Primary(sample.Load{Kind: load})
	c := analysis.Cell{Cell: sample.Cell{Mode: m, From: mode.FromHost, To: to, Load: load,
		On: sample.Lab}, Primary: primary, Baseline: v == ""}
	metric := analysis.Metric{Unit: "bit/s", Median: 1e9 * ratio, Higher: load != workload.RR}
	if v != "" {
		metric.Ratio = &analysis.Ratio{To: "host", Median: ratio, Low: ratio - half,
			High: ratio + half, N: 12, Verdict: v}
	}
	if load == workload.RR && v != "" {
		const base = 20e-6
		metric.Price = &analysis.Price{Unit: "s", Median: base * (ratio - 1),
			Low: base * (ratio - half - 1), High: base * (ratio + half - 1), N: 12}
	}
	c.Metrics = map[string]analysis.Metric{primary: metric}
	return c
}

// Bridge is Judged for a bridge, at the container's address.
func Bridge(load string, ratio, half float64, v stats.Verdict) analysis.Cell {
	return Judged(mode.Bridge, mode.ToContainer, load, ratio, half, v)
}

// NAT is Judged for a port that rules publish, at the loopback address.
func NAT(load string, ratio, half float64, v stats.Verdict) analysis.Cell {
	return Judged(mode.PublishNAT, mode.ToLoopback, load, ratio, half, v)
}

// Proxy is Judged for a port that docker-proxy publishes, at the loopback address.
func Proxy(load string, ratio, half float64, v stats.Verdict) analysis.Cell {
	return Judged(mode.PublishProxy, mode.ToLoopback, load, ratio, half, v)
}

// Reported returns a report of the cells on a machine that runs Docker.
func Reported(cells ...analysis.Cell) *analysis.Report {
	r := &analysis.Report{}
	r.Plan.Baseline, r.Plan.Same = "host", 0.03
	r.Environment.Docker = "running"
	r.Cells = cells
	for _, kind := range analysis.Distinct(cells, func(c analysis.Cell) string { return c.Load }) {
		r.Plan.Loads = append(r.Plan.Loads, sample.Load{Kind: kind, Streams: 1})
	}
	return r
}

// Named returns the cells' placements, modes and loads as a list in one line.
func Named(cells []sample.Cell) string {
	var out []string
	for _, c := range cells {
		n := string(c.From) + " " + c.Tune.Name(string(c.Mode)) + " " + c.Load
		if c.Control {
			n += " control"
		}
		out = append(out, n)
	}
	return strings.Join(out, ", ")
}
