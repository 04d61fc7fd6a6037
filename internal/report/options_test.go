package report

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// optioned is a report of two rows of one load with options, which have the
// metrics that those add.
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
		{"bulk-bidir", sample.Load{Kind: "bulk", Streams: 2, Bidir: true, Write: 4096},
			map[string]float64{analysis.ThroughputOut: 20e9, analysis.ThroughputBack: 10e9}},
		{"bulk-bytes", sample.Load{Kind: "bulk", Streams: 1, Bytes: 100 << 20, Send: "zerocopy", Reverse: true},
			map[string]float64{analysis.CompletionTime: 0.0271}},
		{"bulk-bytes-bidir", sample.Load{Kind: "bulk", Streams: 256, Bytes: 1000, Bidir: true, Send: "sendfile"},
			map[string]float64{analysis.ThroughputOut: 20e9, analysis.ThroughputBack: 10e9, analysis.CompletionTime: 1.5}},
		{"rr-connections", sample.Load{Kind: "rr", Request: 1, Reply: 1, Streams: 16}, map[string]float64{analysis.Transactions: 54321}},
		{"rr-rate", sample.Load{Kind: "rr", Request: 100, Reply: 1, Streams: 4, Rate: 2500.5},
			map[string]float64{analysis.OwnLatenessP50: 31e-6, analysis.Transactions: 2500}},
		{"rr-under-load", sample.Load{Kind: "rr", Request: 1, Reply: 1, Beside: true, Write: 1 << 20},
			map[string]float64{analysis.BesideThroughput: 22.5e9}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := table(t, optioned(tt.load, tt.metrics), Options{Width: DefaultWidth})
			golden(t, tt.name+".txt", got)
			fits(t, got)
		})
	}
	if len(rrColumns) != 6 || len(bulkColumns) != 5 {
		t.Error("options changed the columns of loads without options")
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{1: "1 B", 1000: "1000 B", 1024: "1 KiB", 1536: "1536 B", 100 << 20: "100 MiB", 1 << 40: "1 TiB", 1 << 50: "1024 TiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}
