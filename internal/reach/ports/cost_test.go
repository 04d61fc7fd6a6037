package ports

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestPrice(t *testing.T) {
	cell := func(m mode.Name, from mode.Placement, to mode.Target, ratio float64) analysis.Cell {
		c := analysis.Cell{Cell: sample.Cell{Mode: m, From: from, To: to, Load: "rr"},
			Primary:  "latency_p50",
			Baseline: ratio == 1}
		x := analysis.Metric{Unit: "s"}
		if ratio != 1 {
			x.Ratio = &analysis.Ratio{To: "host", Median: ratio, Low: ratio, High: ratio, N: 9,
				Verdict: stats.Worse}
		}
		c.Metrics = map[string]analysis.Metric{"latency_p50": x}
		return c
	}
	tuned := cell("publish-nat", "host", "address", 9)
	tuned.Tune = "mtu=9000"
	judged := &analysis.Report{Measured: analysis.Measured{
		Plan: analysis.Plan{Baseline: "host"},
		Cells: []analysis.Cell{tuned, cell("host", "host", "address", 1),
			cell("publish-proxy", "host", "loopback", 1.4),
			cell("publish-proxy", "host", "loopback6", 1.5),
			cell("publish-nat", "host", "loopback", 1.1),
			cell("publish-nat", "host", "address", 1.2),
			cell("publish-proxy", "container", "address", 1.6)}}}
	r := try(healthy(), 0, nil)
	r.Price("run.jsonl", judged)
	for client, want := range map[Client]float64{Loopback: 1.4, OwnAddr: 1.2, Neighbour: 1.6,
		Remote: 0} {
		p := find(t, r, "0.0.0.0", 8080).Paths[client]
		switch {
		case want == 0 && p.Cost != nil, want != 0 && (len(p.Cost) != 1 || p.Cost[0].Ratio != want):
			t.Errorf("%s: %+v, want %g", client, p.Cost, want)
		}
	}
	if p := find(t, r, "::", 8080).Paths[Loopback6]; len(p.Cost) != 1 || p.Cost[0].Ratio != 1.5 {
		t.Errorf("%+v", p.Cost)
	}
	if p := find(t, r, "0.0.0.0", 22).Paths[Loopback]; len(p.Cost) != 1 ||
		p.Cost[0].Verdict != "baseline" {
		t.Errorf("%+v", p.Cost)
	}
	if len(r.Costs.Lacks) != 3 { // host from container and remote, publish-nat from remote
		t.Errorf("%v", r.Costs.Lacks)
	}
}
