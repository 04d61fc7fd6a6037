package report

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

var udpColumns = []column{
	{[2]string{"", "Gbit/s"}, true, scaled(analysis.Throughput, giga)},
	{[2]string{"1000", "pkt/s"}, true, scaled(analysis.Packets, kilo)},
	{[2]string{"loss", "%"}, true, lossShare(analysis.Loss)},
	{[2]string{"late", "%"}, true, lossShare(analysis.Reordered)},
	{[2]string{"CPU µs", "/pkt"}, true, scaled(analysis.CPUPerPacket, micro)},
	limitColumn,
}

var udpRRColumns = []column{
	{[2]string{"p50", "µs"}, true, merged(analysis.LatencyP50)},
	{[2]string{"p99", "µs"}, true, merged(analysis.LatencyP99)},
	{[2]string{"p99.9", "µs"}, true, merged(analysis.LatencyP999)},
	{[2]string{"CPU µs", "/trip"}, true, scaled(analysis.CPUPerTrip, micro)},
	{[2]string{"loss", "%"}, true, lossShare(analysis.Loss)},
	limitColumn,
}

// lossShare prints a share in per cent with three digits, because little loss is
// much; none is 0.
func lossShare(metric string) func(analysis.Cell) string {
	return func(c analysis.Cell) string {
		if m, ok := c.Metrics[metric]; ok && m.Median == 0 {
			return "0"
		}
		return scaled(metric, percent)(c)
	}
}

func udpWords(l sample.Load) string {
	words := []string{"udp, " + plural(l.Size, "byte")}
	if l.Streams > 1 {
		words = append(words, plural(l.Streams, "flow"))
	}
	if l.Rate > 0 {
		words = append(words, "at "+bitrate(l.Rate))
	} else {
		words = append(words, "at the highest rate that loses at most 0.1 %")
	}
	if l.Batch > 1 {
		words = append(words, fmt.Sprintf("%d a call", l.Batch))
	}
	if l.GSO {
		words = append(words, "GSO")
	}
	return strings.Join(words, ", ")
}

// bitrate is a rate in words.
func bitrate(rate float64) string {
	for _, u := range []struct {
		name  string
		scale float64
	}{{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}} {
		if rate >= u.scale {
			return fmt.Sprintf("%g %s", rate/u.scale, u.name)
		}
	}
	return fmt.Sprintf("%g bit/s", rate)
}

func udpRRWords(l sample.Load) string { return "udp-" + rrWords(l) }
