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

// thousands is the rate per second; ratio and half are the median and half width.
func connections(m mode.Name, to mode.Target, thousands, ratio, half float64,
	v stats.Verdict) analysis.Cell {
	c := row(m, mode.FromHost, to, "crr", 1, ratio, half, v)
	c.Metrics = map[string]analysis.Metric{}
	set := func(name, unit string, x float64) {
		c.Metrics[name] = analysis.Metric{Unit: unit, Median: x, Low: x, High: x, Merged: &x,
			Rounds: []float64{x}}
	}
	set(workload.Connections, "1/s", 1000*thousands)
	set(workload.ConnectP50, "s", 0.2e-3/thousands)
	set(workload.LatencyP50, "s", 1e-3/thousands)
	set(workload.LatencyP99, "s", 3e-3/thousands)
	set(workload.LatencyP999, "s", 30e-3/thousands)
	set(workload.CPUPerConnection, "s", 1.7e-3/thousands)
	if v != "" {
		x := c.Metrics[workload.Connections]
		x.Ratio = &analysis.Ratio{To: "host", Median: ratio, Low: ratio - half,
			High: ratio + half/2, N: 12, Verdict: v}
		c.Metrics[workload.Connections] = x
	}
	return c
}

func TestConnectionsTable(t *testing.T) {
	r := head()
	r.Plan.Loads = []sample.Load{{Kind: "crr", Streams: 4,
		Options: sample.Messages{Request: 100, Reply: 2000}, Warmup: 0.05, Window: 0.25}}
	r.Control.Groups = []analysis.Floor{{From: "host", Load: "crr", On: "lab",
		Floor: map[string]float64{workload.Connections: 0.034}}}
	proxy := connections(mode.PublishProxy, mode.ToLoopback6, 5.61, 0.31, 0.02, stats.Worse)
	proxy.Warnings = []analysis.Warning{{Code: "ports-exhausted",
		Text: "2 of 12 visits were cut short, because there are ephemeral ports for only 28232 " +
			"connections: " +
			"use a shorter --window, or widen net.ipv4.ip_local_port_range"}}
	r.Cells = []analysis.Cell{
		connections(mode.Host, mode.ToLoopback, 18.2, 1, 0, ""),
		connections(mode.Bridge, mode.ToContainer, 16.9, 0.93, 0.02, stats.Worse),
		connections(mode.PublishNAT, mode.ToAddress, 15.3, 0.84, 0.11, stats.Unclear),
		proxy,
	}
	golden(t, "connections.txt", table(t, r, format.Options{}))
}
