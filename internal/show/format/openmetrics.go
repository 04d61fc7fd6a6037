package format

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// metricsFormat writes OpenMetrics (https://prometheus.io/docs/specs/om/open_metrics_spec/) with
// gauges only, which readers of Prometheus' older format accept too. All samples of a family have
// the same label names, because strict readers refuse the whole file otherwise. Each has the study,
// because the files of several studies may be in one directory of node_exporter.
var metricsFormat = Format{Name: "openmetrics", Kinds: []document.Kind{document.AReport},
	write: writeMetrics}

func writeMetrics(w io.Writer, d document.Document, _ Options) error {
	m := exposition{families: map[string]*family{}, seen: map[string]bool{}}
	m.run(d.Run)
	for f := range d.Figures {
		m.figure(f)
	}
	for _, name := range m.order {
		f := m.families[name]
		if _, err := fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n%s", name, f.help, name, f.samples.String()); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "# EOF\n")
	return err
}

// exposition collects lines by family, because a family's lines must be contiguous.
type exposition struct {
	families map[string]*family
	order    []string
	seen     map[string]bool // samples: no two may have the same labels
}

type family struct {
	help    string
	samples strings.Builder
}

// labels is a list of names and values. A label without a value is as good as none to readers.
type labels [][2]string

func (m *exposition) add(name, help string, l labels, value float64) {
	var b strings.Builder
	for i, x := range l {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(x[0] + `="` + labelEscapes.Replace(x[1]) + `"`)
	}
	sample := name + "{" + b.String() + "}"
	if m.seen[sample] || math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	m.seen[sample] = true
	if m.families[name] == nil {
		m.families[name] = &family{help: help}
		m.order = append(m.order, name)
	}
	m.families[name].samples.WriteString(sample + " " + strconv.FormatFloat(value, 'g', -1, 64) +
		"\n")
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// run adds the run's description, duration, rounds and noise floors, and the numbers of cells with
// and without a result.
func (m *exposition) run(r *document.Run) {
	study := labels{{"study", r.Study}}
	m.add("toll_run", "The run: 1.", append(study[:1:1], labels{
		{"version", r.Tool}, {"kernel", r.Kernel},
		{"cpu", r.CPU}, {"baseline", r.Baseline}, {"ended_by", r.EndedBy}}...), 1)
	m.add("toll_run_duration_seconds", "How long the run took.", study, r.Elapsed)
	m.add("toll_run_rounds", "Complete rounds.", study, float64(r.Rounds))
	for _, x := range []struct {
		result string
		cells  int
	}{{"measured", r.Measured}, {"failed", r.Failed}, {"skipped", r.Skipped}} {
		m.add("toll_run_cells", "Cells of the plan, by whether they have a result.",
			append(study[:1:1], [2]string{"result", x.result}), float64(x.cells))
	}
	for _, f := range r.Floors {
		m.add("toll_noise_floor_ratio",
			"The baseline against itself, of the metric that decides: 0.02 is 2 %.",
			append(study[:1:1], labels{{"from", f.From}, {"on", f.On}, {"load", f.Load},
				{"point", f.Point}, {"pin", f.Pin}, {"shape", crowd(f.Subject)},
				{"metric", f.Metric}}...), f.Value)
	}
}

// comparisons names the families of statistics that accompany a metric's value.
var comparisons = map[document.Statistic]struct{ name, help string }{
	document.Ratio: {"toll_baseline_ratio",
		"The metric against the baseline's, paired by slice or round."},
	document.Scaling: {"toll_scaling_ratio",
		"The metric against that of the same mode's smallest crowd."},
	document.Effect: {"toll_node_effect_ratio", "A node's links against typical ones."},
}

func (m *exposition) figure(f document.Figure) {
	of := labels{{"study", f.Study}, {"mode", f.Mode}, {"from", f.From}, {"to", f.To}, {"on", f.On},
		{"load", f.Load}, {"point", f.Point}, {"pin", f.Pin}, {"tune", f.Tune},
		{"shape", crowd(f.Subject)}}
	metric := append(of[:len(of):len(of)], [2]string{"metric", f.Metric})
	switch f.Statistic {
	case document.Median, document.Merged, document.Typical, document.Fastest, document.Slowest:
		if name, ours := gaugeName(f); ours {
			m.interval(name, "The metric "+f.Metric+" of toll's reports.", of, f)
		} else {
			m.interval("toll_program", "A metric that a program printed, in its base unit.",
				append(metric, [2]string{"unit", f.Unit}), f)
		}
	case document.Ratio, document.Scaling, document.Effect:
		x := comparisons[f.Statistic]
		m.interval(x.name, x.help, append(metric, [2]string{"against", f.Against}), f)
		if f.Statistic == document.Ratio {
			m.add("toll_verdict",
				"What the ratio to the baseline says: 1 for the verdict that it has.",
				append(metric, [2]string{"verdict", f.Verdict}), 1)
		}
	case document.Added, document.Part:
		name, help := "toll_added", "What the mode adds to the baseline's metric."
		if f.Statistic == document.Part {
			name, help = "toll_part",
				"What the part costs that a rung of the ladder has beyond the one below, or that a part of a trip adds."
		}
		m.interval(name+unitSuffix(f.Unit), help, append(metric, [2]string{"against", f.Against}),
			f)
		if f.Statistic == document.Part {
			m.add("toll_part_verdict",
				"What the price of the part says: 1 for the verdict that it has.",
				append(metric, [2]string{"verdict", f.Verdict}), 1)
		}
	case document.Fault:
		m.add("toll_fault", "A slow or lossy node, link or group of nodes: 1.",
			append(metric, [2]string{"kind", f.Verdict}, [2]string{"way", f.Note}), 1)
	case document.NoFigure:
		m.add("toll_failed", "A cell, node or link without a result: 1.", of, 1)
	}
}

// interval adds a figure and the ends of its interval.
func (m *exposition) interval(name, help string, of labels, f document.Figure) {
	stat := func(s string) labels { return append(of[:len(of):len(of)], [2]string{"stat", s}) }
	switch f.Statistic {
	case document.Merged, document.Typical, document.Fastest, document.Slowest:
		m.add(name, help, stat(string(f.Statistic)), f.Value)
	default:
		m.add(name, help, stat("median"), f.Value)
	}
	if f.Low != nil && f.High != nil {
		m.add(name, help, stat("low"), *f.Low)
		m.add(name, help, stat("high"), *f.High)
	}
}

// gaugeName returns the name of one of our own metrics, which ends with its unit. ours is false for
// metrics that foreign programs print.
func gaugeName(f document.Figure) (name string, ours bool) {
	if !ownMetric.MatchString(f.Metric) || f.Load == workload.Exec &&
		f.Metric != workload.Elapsed && f.Metric != workload.BusyCPUs {
		return "", false
	}
	suffix := unitSuffix(f.Unit)
	if f.Metric == workload.CPUPerByte {
		suffix = "_seconds"
	}
	return "toll_" + f.Metric + suffix, true
}

var ownMetric = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// unitSuffix returns the suffix of metric names for a unit.
func unitSuffix(unit string) string {
	return map[string]string{"s": "_seconds", "bit/s": "_bits_per_second",
		"B/s": "_bytes_per_second", "1/s": "_per_second", "B": "_bytes",
		"s/B": "_seconds_per_byte", "1": "_ratio", "ratio": "_ratio"}[unit]
}
