package view

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

func prediction(w predict.Workload) *predict.Prediction {
	q := func(unit string, x float64) *predict.Quantity {
		return &predict.Quantity{Unit: unit, Median: x, Low: 0.9 * x, High: 1.2 * x, N: 12}
	}
	price := func(unit string, x float64, v stats.Verdict) analysis.Price {
		return analysis.Price{Unit: unit, Median: x, Low: 0.8 * x, High: 1.1 * x, N: 12, Verdict: v}
	}
	row := func(m mode.Name, from mode.Placement, page float64, v stats.Verdict) predict.Row {
		r := predict.Row{Mode: string(m), From: string(from), On: "lab", Label: string(m),
			Baseline: v == "", Extra: 4095,
			Page: q("s", page), CPU: q("core", 12*page), Over: map[string]analysis.Price{},
			Costs: map[string]float64{workload.LatencyP50: page / 20, workload.Throughput: 40e9,
				workload.CPUPerTrip: 30e-6, workload.CPUPerByte: 0.25e-9}}
		if v != "" {
			r.Over[predict.Page] = price("s", page/4, v)
			r.Over[predict.CPU] = price("core", page, stats.Unclear)
		}
		if w.Tokens > 0 {
			r.StreamCPU = q("core", 0.05)
			r.Costs[workload.CPUPerToken] = 20e-6
			r.Over[predict.StreamCPU] = price("core", 0.001, stats.Nothing)
		}
		return r
	}
	p := &predict.Prediction{Schema: predict.Schema, Environment: head().Environment, Workload: w,
		Baseline: "host",
		Rows: []predict.Row{row(mode.Host, mode.FromHost, 1.3e-3, ""),
			row(mode.Bridge, mode.FromHost, 1.4e-3, stats.Nothing),
			row(mode.PublishProxy, mode.FromHost, 2.1e-3, stats.Costs),
			row(mode.Host, mode.FromRemote, 1.5e-3, "")},
		Notes: []string{
			"The file has no bulk: what replies of 4096 bytes cost beyond the measured " +
				"1 is left out."}}
	p.Found = predict.Findings(p)
	return p
}

func TestPrediction(t *testing.T) {
	for name, w := range map[string]predict.Workload{
		"predict":        {Queries: 20, Bytes: 4096, QPS: 500},
		"predict-tokens": {Queries: 1, Bytes: 1, QPS: 25_000, Tokens: 5000},
	} {
		t.Run(name, func(t *testing.T) {
			b := written(t, "table", Prediction(prediction(w)), format.Options{})
			whole(t, Prediction(prediction(w)), b)
			golden(t, name+".txt", b)
			fits(t, b)
		})
	}
}

// Few rounds have no interval, and what an interval leaves open is no figure.
func TestFewRoundsPredictNoFigure(t *testing.T) {
	q := &predict.Quantity{Unit: "s", Median: 1e-3, Low: 0.99e-3, High: 1.01e-3, N: 2}
	if got := quantity(q, milli).Text; got != "1.00 ±?" {
		t.Errorf("a level of 2 rounds: %q", got)
	}
	p := analysis.Price{Unit: "s", Median: 81e-6, N: 2, Verdict: stats.Unclear}
	for half, want := range map[float64]string{7769e-6: "?", 100e-6: "+81 ±100 ?"} {
		p.Low, p.High = p.Median-half, p.Median+half
		if got := overText(p, q.Median); got != want {
			t.Errorf("±%g s of %g s: %q, want %q", half, q.Median, got, want)
		}
	}
}

func TestQueryTable(t *testing.T) {
	r := head()
	r.Plan.Loads[1] = sample.Load{Kind: "query",
		Options: sample.QueryOptions{Messages: sample.Messages{Request: 100, Reply: 1024},
			Queries: 20}, Warmup: r.Plan.Loads[1].Warmup, Window: r.Plan.Loads[1].Window}
	for _, c := range []analysis.Cell{trip(mode.Host, mode.ToLoopback, 1300, 1, 0, ""),
		trip(mode.Bridge, mode.ToContainer, 1400, 1.07, 0.02, stats.Worse)} {
		c.Load = "query"
		c.Metrics[workload.Transactions] = analysis.Metric{Unit: "1/s", Median: 770}
		c.Metrics[workload.QueryP50] = analysis.Metric{Unit: "s", Median: 65e-6}
		r.Cells = append(r.Cells, c)
	}
	got := table(t, r, format.Options{})
	golden(t, "query.txt", got)
	fits(t, got)
}

// The mark of quantities without an interval is explained where one has it.
func TestFewRoundsOfPredictionsAreExplained(t *testing.T) {
	key := func(n int) string {
		return predictionKey(&predict.Prediction{Rows: []predict.Row{
			{Page: &predict.Quantity{Unit: "s", Median: 1, N: stats.MinJudged}},
			{Page: &predict.Quantity{Unit: "s", Median: 1, N: n}}}})
	}
	if all, few := key(stats.MinJudged), key(stats.MinJudged-1); len(few) <= len(all) {
		t.Errorf("%q, %q", few, all)
	}
}
