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

func datagrams(m mode.Name, to mode.Target, gbit, loss, late, ratio, half float64,
	v stats.Verdict) analysis.Cell {
	c := row(m, mode.FromHost, to, "udp", gbit*1e9, ratio, half, v)
	for name, x := range map[string]float64{workload.Packets: gbit * 1e9 / 8 / 1400,
		workload.Loss: loss, workload.Reordered: late,
		workload.CPUPerPacket: 1.5e-6 / ratio} {
		c.Metrics[name] = analysis.Metric{Median: x, Rounds: []float64{x}}
	}
	return c
}

func TestTableOfUDP(t *testing.T) {
	r := head()
	r.Plan.Loads = []sample.Load{
		{Kind: "udp", Streams: 2, Options: sample.UDPOptions{
			Rate: 4.5e9, Size: 1400, Batch: 8, GSO: true}, Warmup: 0.05, Window: 0.25},
		{Kind: "udp-rr", Options: sample.Messages{Request: 1, Reply: 100}, Warmup: 0.05,
			Window: 0.25},
	}
	rr := row(mode.Bridge, mode.FromHost, mode.ToContainer, "udp-rr", 18.8e-6, 1.24, 0.03,
		stats.Worse)
	for name, x := range map[string]float64{workload.LatencyP50: 18.8e-6,
		workload.LatencyP99: 60e-6, workload.CPUPerTrip: 20e-6, workload.Loss: 0.0004} {
		merged := x
		rr.Metrics[name] = analysis.Metric{Median: x, Merged: &merged, Rounds: []float64{x}}
	}
	p50 := rr.Metrics[workload.LatencyP50]
	p50.Ratio = &analysis.Ratio{To: "host", Median: 1.24, Low: 1.21, High: 1.27, N: 12,
		Verdict: stats.Worse}
	rr.Metrics[workload.LatencyP50] = p50
	full := datagrams(mode.Host, mode.ToLoopback, 4.5, 0, 0, 1, 0, "")
	full.LimitedBy = "rate"
	r.Cells = []analysis.Cell{
		full,
		datagrams(mode.Bridge, mode.ToContainer, 4.49, 0.0012, 0, 1, 0.01, stats.Same),
		datagrams(mode.PublishProxy, mode.ToLoopback, 1.2, 0.73, 0.00004, 0.27, 0.02, stats.Worse),
		rr,
	}
	r.Control.Groups = nil
	golden(t, "udp.txt", table(t, r, format.Options{}))
}
