package chart

import (
	"math"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

func TestChartsOfAPrediction(t *testing.T) {
	q := func(unit string, x float64) *predict.Quantity {
		return &predict.Quantity{Unit: unit, Median: x, Low: x, High: x, N: 12}
	}
	row := func(label, from string, page float64) predict.Row {
		return predict.Row{Label: label, Mode: label, From: from, On: "lab", Page: q("s", page),
			Over: map[string]analysis.Price{}}
	}
	host, proxy, far := row("host", "host", 2e-3), row("publish-proxy", "host", 3.1e-3),
		row("host", "remote", 4e-3)
	host.Baseline, far.Baseline = true, true
	host.CPU, proxy.CPU = q("core", 0.1), q("core", 0.2)
	proxy.Over[predict.Page] = analysis.Price{Unit: "s", Median: 1e-3, Low: 0.8e-3, High: 1.2e-3,
		N: 12, Verdict: stats.Costs}
	proxy.Over[predict.CPU] = analysis.Price{Unit: "core", Median: 0.1, Low: 0.1, High: 0.1, N: 1,
		Verdict: stats.Unclear}
	p := Prediction(&predict.Prediction{Baseline: "host", Rows: []predict.Row{host, far, proxy}})
	if len(p.Groups) != 1 || len(p.Groups[0].Charts) != 2 {
		t.Fatalf("%+v, want one group, because from another machine there is only the baseline",
			p.Groups)
	}
	spec := chartOf(t, p.Groups, "Time of a page, against host").Spec.(intervals)
	if len(spec.Rows) != 2 || spec.Rows[0].Value != 1 || spec.Rows[0].Text != "baseline" ||
		spec.Rows[0].Figure != "2.00 ms" {
		t.Fatalf("%+v", spec.Rows)
	}
	// The baseline's figure and the paired difference, not the mode's own median.
	if r := spec.Rows[1]; math.Abs(r.Value-1.5) > 1e-9 || math.Abs(*r.Low-1.4) > 1e-9 ||
		math.Abs(*r.High-1.6) > 1e-9 || r.Verdict != string(stats.Costs) || r.Figure != "3.00 ms" {
		t.Errorf("%+v", r)
	}
	cpu := chartOf(t, p.Groups, "CPU time of the queries, against host").Spec.(intervals)
	if r := cpu.Rows[1]; r.Low != nil || r.Figure != "20.0 % of a core" || r.Value != 2 {
		t.Errorf("%+v", r)
	}
}
