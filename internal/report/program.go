package report

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// programColumns are those of the metrics that a program prints, each in a unit
// that fits its middle row.
func programColumns(r *analysis.Report, l sample.Load) []column {
	var out []column
	names := []string{}
	for _, g := range l.Program.Gauges {
		names = append(names, g.Name)
	}
	for _, name := range append(names, analysis.Elapsed) {
		unit, by := fitting(r, l.Kind, name)
		out = append(out, column{[2]string{name, unit}, true, scaled(name, by)})
	}
	return append(out, column{[2]string{"CPUs", "busy"}, true, scaled(analysis.BusyCPUs, 1)}, limitColumn)
}

// steps are the multiples in which a base unit is printed, the largest first.
var steps = map[string][]struct {
	least float64
	unit  string
	by    float64
}{
	"s":     {{1, "s", 1}, {1e-3, "ms", milli}, {0, "µs", micro}},
	"bit/s": {{1e9, "Gbit/s", giga}, {1e6, "Mbit/s", 1e-6}, {0, "kbit/s", kilo}},
	"B/s":   {{1e9, "GB/s", giga}, {1e6, "MB/s", 1e-6}, {0, "kB/s", kilo}},
	"1/s":   {{1e4, "1000/s", kilo}, {0, "/s", 1}},
	"1":     {{0, "%", percent}},
}

func fitting(r *analysis.Report, load, metric string) (unit string, by float64) {
	var rows []float64
	for _, c := range r.Cells {
		if m, ok := c.Metrics[metric]; ok && c.Load == load {
			rows, unit = append(rows, m.Median), m.Unit
		}
	}
	usual := 0.0
	if slices.Sort(rows); len(rows) > 0 {
		usual = rows[len(rows)/2]
	}
	for _, s := range steps[unit] {
		if usual >= s.least {
			return s.unit, s.by
		}
	}
	return unit, 1
}

func programWords(l sample.Load) string {
	p := l.Program
	if p == nil {
		return l.Kind
	}
	if p.Recipe != "" {
		return fmt.Sprintf("%s, %d s", p.Recipe, p.Seconds)
	}
	return p.Client
}
