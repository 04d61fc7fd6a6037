package analysis_test

import (
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestQuery(t *testing.T) {
	encode := func(d time.Duration, n int64) *sample.EncodedHisto {
		h := sample.NewHistogram()
		if err := h.RecordValues(int64(d), n); err != nil {
			t.Fatal(err)
		}
		e, err := sample.Encode(h)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	r := judgetest.New(t, judgetest.Trio(mode.PublishProxy, "query")...)
	r.File.Header.Plan.Loads = []sample.Load{
		{Kind: "query", Options: sample.QueryOptions{
			Messages: sample.Messages{Request: 100, Reply: 1024}, Queries: 20}, Warmup: 0.05,
			Window: 1}}
	r.Rounds(6, judgetest.Steady(0, 0, 0), func(v *sample.Visit) {
		took := []time.Duration{time.Millisecond, time.Millisecond, 2 * time.Millisecond}[v.Cell]
		pages := int64(time.Second / took)
		v.Client.Sent, v.Server.Received, v.Client.Trips = 0, 0, 20*pages
		v.Latency = encode(took, pages)
		v.Times = map[string]*sample.EncodedHisto{"query": encode(took/20, 20*pages)}
	})
	c := analysis.Judge(r.File).Cells[1]
	for name, want := range map[string]float64{workload.LatencyP50: 2e-3,
		workload.Transactions: 500, workload.QueryP50: 100e-6, workload.QueryP99: 100e-6,
		workload.CPUPerTrip: 0.8 / 500} {
		if got := c.Metrics[name]; !judgetest.Near(got.Median, want) {
			t.Errorf("%s = %+v, want %v", name, got, want)
		}
	}
	if x := c.Metrics[workload.LatencyP50].Ratio; x == nil || !judgetest.Near(x.Median, 2) ||
		x.Verdict != stats.Worse {
		t.Errorf("ratio %+v", x)
	}
	if c.CPU.Unit != "s" || !judgetest.Near(c.CPU.Client, 0.4/500) {
		t.Errorf("CPU split %+v", c.CPU)
	}
	if _, ok := c.Metrics[workload.Throughput]; ok {
		t.Error("query has a throughput")
	}
}
