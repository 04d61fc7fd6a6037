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

func optioned(l sample.Load, metrics map[string]float64) *analysis.Report {
	r := head()
	r.Plan.Loads = []sample.Load{l}
	r.Control.Groups = nil
	of := bulk
	x := 30.0
	if l.Kind == "rr" {
		of, x = trip, 60
	}
	r.Cells = []analysis.Cell{
		of(mode.Host, mode.ToLoopback, x, 1, 0, ""),
		of(mode.PublishProxy, mode.ToLoopback6, x/2, 0.5, 0.1, stats.Worse),
	}
	for _, c := range r.Cells {
		for name, x := range metrics {
			c.Metrics[name] = analysis.Metric{Median: x, Rounds: []float64{x}}
		}
	}
	return r
}

func TestOptionTables(t *testing.T) {
	for _, tt := range []struct {
		name    string
		load    sample.Load
		metrics map[string]float64
	}{
		{"bulk-bidir", sample.Load{Kind: "bulk", Streams: 2,
			Options: sample.BulkOptions{Write: 4096, Bidir: true}},
			map[string]float64{workload.ThroughputOut: 20e9, workload.ThroughputBack: 10e9}},
		{"bulk-bytes", sample.Load{Kind: "bulk", Streams: 1,
			Options: sample.BulkOptions{Bytes: 100 << 20, Send: "zerocopy", Reverse: true}},
			map[string]float64{workload.CompletionTime: 0.0271}},
		{"bulk-bytes-bidir", sample.Load{Kind: "bulk", Streams: 256,
			Options: sample.BulkOptions{Bytes: 1000, Bidir: true, Send: "sendfile"}},
			map[string]float64{workload.ThroughputOut: 20e9, workload.ThroughputBack: 10e9,
				workload.CompletionTime: 1.5}},
		{"rr-connections", sample.Load{Kind: "rr", Streams: 16,
			Options: sample.RROptions{Messages: sample.Messages{Request: 1, Reply: 1}}},
			map[string]float64{workload.Transactions: 54321}},
		{"rr-rate", sample.Load{Kind: "rr", Streams: 4,
			Options: sample.RROptions{Messages: sample.Messages{Request: 100, Reply: 1},
				Rate: 2500.5}},
			map[string]float64{workload.OwnLatenessP50: 31e-6, workload.Transactions: 2500}},
		{"rr-under-load", sample.Load{Kind: "rr",
			Options: sample.RROptions{Messages: sample.Messages{Request: 1, Reply: 1}, Beside: true,
				Write: 1 << 20}},
			map[string]float64{workload.BesideThroughput: 22.5e9}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := table(t, optioned(tt.load, tt.metrics),
				format.Options{Width: format.DefaultWidth})
			golden(t, tt.name+".txt", got)
			fits(t, got)
		})
	}
}
