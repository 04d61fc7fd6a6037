package view

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

// rate is in bit/s or in round trips per second.
func crowdRow(m mode.Name, to mode.Target, load string, s sample.Shape, rate float64,
	v stats.Verdict) analysis.Cell {
	x0 := rate
	if load == "rr" {
		x0 = 50e-6
	}
	c := row(m, mode.FromContainer, to, load, x0, 1, 0, "")
	c.Shape, c.Baseline = s, v == ""
	uneven := analysis.Ratio{To: "1×1×1", Median: 0.82, Low: 0.41, High: 1.1, N: 12,
		Verdict: stats.Unclear}
	unit := map[string]string{"bulk": "bit/s", "rr": "1/s"}[load]
	c.Primary = analysis.Rate(sample.Load{Kind: load})
	set := func(name string, x float64) {
		c.Metrics[name] = analysis.Metric{Unit: unit, Median: x, Rounds: []float64{x}}
	}
	set(analysis.Rate(sample.Load{Kind: load}), rate)
	x := c.Metrics[analysis.Rate(sample.Load{Kind: load})]
	if s.Clients > 1 {
		x.Scaling = &uneven
	}
	if v != "" {
		toHost := uneven
		toHost.To, toHost.Verdict = "host", v
		x.Ratio = &toHost
	}
	c.Metrics[analysis.Rate(sample.Load{Kind: load})] = x
	each := rate / float64(s.Clients)
	set(workload.ClientMean, each)
	set(workload.ClientMin, 0.5*each)
	set(workload.ClientMax, 1.5*each)
	set(workload.ClientFairness, 0.9345)
	set(workload.ProcessMin, 0)
	set(workload.ProcessFairness, 0.41)
	return c
}

func crowded() *analysis.Report {
	one, many := sample.Shape{Servers: 1, Clients: 1, Procs: 1},
		sample.Shape{Servers: 16, Clients: 16, Procs: 16}
	r := head()
	r.Study = sample.StudyScale
	r.Control.Groups = []analysis.Floor{
		{From: "container", Load: "bulk", On: "lab", Shape: one,
			Floor: map[string]float64{workload.Throughput: 0.01}},
		{From: "container", Load: "bulk", On: "lab", Shape: many,
			Floor: map[string]float64{workload.Throughput: 0.05}},
		{From: "container", Load: "rr", On: "lab", Shape: one,
			Floor: map[string]float64{workload.Transactions: 0.02}},
	}
	for _, load := range []string{"bulk", "rr"} {
		rate := map[string]float64{"bulk": 54.3e9, "rr": 25.4e3}[load]
		for _, m := range []struct {
			name mode.Name
			to   mode.Target
			v    stats.Verdict
		}{{mode.Host, mode.ToLoopback, ""}, {mode.PublishProxy, mode.ToAddress, stats.Unclear},
			{mode.Bridge, mode.ToContainer, stats.Worse}} {
			r.Cells = append(r.Cells, crowdRow(m.name, m.to, load, one, rate, m.v),
				crowdRow(m.name, m.to, load, many, 2.5*rate, m.v))
			rate *= 0.9
		}
	}
	r.Findings = []string{
		"bridge from container, bulk: 16×16×16 delivers 82 % of the throughput of 1×1×1."}
	r.Failed = []analysis.Failed{{Cell: sample.Cell{
		Mode: "ovs", From: "container", To: "container", Load: "bulk", Shape: many, On: "lab"},
		Reason: "the visit failed", Evidence: "client: connection refused; and 255 more"}}
	r.Cells[5].Warnings = []analysis.Warning{{Code: "late", Text: "most visits started late"}}
	return r
}

func TestScaleTable(t *testing.T) {
	r := crowded()
	got := table(t, r, format.Options{})
	golden(t, "scale.txt", got)
	fits(t, got)

	r.Cells = nil
	fits(t, table(t, r, format.Options{}))
}
