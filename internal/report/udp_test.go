package report

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// datagrams is a cell of udp with what only its columns show.
func datagrams(m mode.Name, to mode.Target, gbit, loss, late, ratio, half float64, v stats.Verdict) analysis.Cell {
	c := row(m, mode.FromHost, to, "udp", gbit*1e9, ratio, half, v)
	for name, x := range map[string]float64{analysis.Packets: gbit * 1e9 / 8 / 1400, analysis.Loss: loss, analysis.Reordered: late,
		analysis.CPUPerPacket: 1.5e-6 / ratio} {
		c.Metrics[name] = analysis.Metric{Median: x, Rounds: []float64{x}}
	}
	return c
}

func TestTableOfUDP(t *testing.T) {
	r := head()
	r.Plan.Loads = []sample.Load{
		{Kind: "udp", Streams: 2, Size: 1400, Rate: 4.5e9, Batch: 8, GSO: true, Warmup: 0.05, Window: 0.25},
		{Kind: "udp-rr", Request: 1, Reply: 100, Warmup: 0.05, Window: 0.25},
	}
	rr := row(mode.Bridge, mode.FromHost, mode.ToContainer, "udp-rr", 18.8e-6, 1.24, 0.03, stats.Worse)
	for name, x := range map[string]float64{analysis.LatencyP50: 18.8e-6, analysis.LatencyP99: 60e-6, analysis.CPUPerTrip: 20e-6, analysis.Loss: 0.0004} {
		merged := x
		rr.Metrics[name] = analysis.Metric{Median: x, Merged: &merged, Rounds: []float64{x}}
	}
	p50 := rr.Metrics[analysis.LatencyP50]
	p50.Ratio = &analysis.Ratio{To: "host", Median: 1.24, Low: 1.21, High: 1.27, N: 12, Verdict: stats.Worse}
	rr.Metrics[analysis.LatencyP50] = p50
	full := datagrams(mode.Host, mode.ToLoopback, 4.5, 0, 0, 1, 0, "")
	full.LimitedBy = "rate"
	r.Cells = []analysis.Cell{
		full,
		datagrams(mode.Bridge, mode.ToContainer, 4.49, 0.0012, 0, 1, 0.01, stats.Same),
		datagrams(mode.PublishProxy, mode.ToLoopback, 1.2, 0.73, 0.00004, 0.27, 0.02, stats.Worse),
		rr,
	}
	r.Control.Groups = nil
	golden(t, "udp.txt", table(t, r, Options{}))
}

func TestWordsOfUDP(t *testing.T) {
	for want, l := range map[string]sample.Load{
		"udp, 64 bytes, at the highest rate that loses at most 0.1 %":              {Kind: "udp", Size: 64, Streams: 1, Batch: 1},
		"udp, 1400 bytes, at 500 Mbit/s":                                           {Kind: "udp", Size: 1400, Streams: 1, Rate: 5e8},
		"udp, 1400 bytes, 3 flows, at 1.5 Gbit/s, GSO":                             {Kind: "udp", Size: 1400, Streams: 3, Rate: 1.5e9, GSO: true},
		"udp, 9000 bytes, at the highest rate that loses at most 0.1 %, 16 a call": {Kind: "udp", Size: 9000, Batch: 16},
		"udp, 100 bytes, at 20 kbit/s":                                             {Kind: "udp", Size: 100, Rate: 2e4},
	} {
		if got := udpWords(l); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := udpRRWords(sample.Load{Request: 1, Reply: 1}); got != "udp-rr, 1 byte each way" {
		t.Error(got)
	}
}
