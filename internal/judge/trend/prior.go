package trend

import (
	"fmt"
	"maps"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Spread is the difference between the epochs of a run's rows that their slices do not explain.
type Spread struct {
	Setting
	Metric string  `json:"metric"`
	SD     float64 `json:"sd"` // of the ratios' logarithms
}

// Setting holds everything but the mode that decides how much epochs differ. A run predicts the
// differences of another only if both have the same setting.
type Setting struct {
	From  string  `json:"from"`
	Work  string  `json:"work"` // the load's options, in words
	Slice float64 `json:"slice_s"`
	On    string  `json:"on"`
	CPUs  string  `json:"cpus"` // CPUs of the pinned ends
}

func settingOf(p sample.Plan, c sample.Cell) Setting {
	l := p.LoadAt(c)
	cpus := p.CPUsOf(c)
	return Setting{string(c.From), workload.Of(l).Words(l), l.Slice, c.On,
		fmt.Sprint(cpus.Client, cpus.Server, cpus.Relay)}
}

func spreadsOf(p sample.Plan, groups []analysis.Floor) (out []Spread) {
	for _, g := range groups {
		c := sample.Cell{From: mode.Placement(g.From), Load: g.Load, Point: g.Point, On: g.On,
			Pin: g.Pin}
		for _, metric := range slices.Sorted(maps.Keys(g.Epochs)) {
			out = append(out, Spread{settingOf(p, c), metric, g.Epochs[metric].SD})
		}
	}
	return out
}

const (
	// newest is the number of runs of a setting that are used: a machine changes.
	newest = 10
	// degrees of freedom of the first run, of each further one, and of all at most: runs of a
	// machine differ
	oneRun, anotherRun, mostRuns = 6, 2, 12
)

// Priors returns the expected differences between epochs in a run of the plan: the median over
// earlier runs, given the newest first, with the same kernel, CPU, load and placement.
func Priors(runs []Summary, p sample.Plan, env sample.Environment) (out []sample.Prior) {
	asked := map[sample.Prior]bool{}
	for _, c := range p.Cells {
		l := p.LoadAt(c)
		of := sample.Prior{From: string(c.From), Load: c.Load, Point: c.Point, On: c.On, Pin: c.Pin}
		if l.Slice == 0 || c.Shape.Crowd() || asked[of] {
			continue
		}
		asked[of] = true
		seen := map[string][]float64{} // variances by metric
		var metrics []string
		for _, r := range runs {
			if r.Kernel != env.Kernel || r.CPU != env.CPUModel {
				continue
			}
			for _, s := range r.Spreads {
				if s.Setting != settingOf(p, c) || !(s.SD >= 0 && s.SD < 1) ||
					len(seen[s.Metric]) == newest {
					continue
				}
				metrics = addNew(metrics, s.Metric)
				seen[s.Metric] = append(seen[s.Metric], s.SD*s.SD)
			}
		}
		for _, m := range metrics {
			x := of
			x.Metric, x.Variance = m, stats.Median(seen[m])
			x.Freedom = min(oneRun+anotherRun*float64(len(seen[m])-1), mostRuns)
			out = append(out, x)
		}
	}
	return out
}
