package trend

import (
	"fmt"
	"maps"
	"math"
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
	l := p.Loads.At(c)
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

// Repeats returns how much the ratios of each load differed between earlier runs of the same plan,
// given the newest first, with the same kernel and CPU, if the machine's congestion control paces;
// it counts for as much as what is assumed without such runs from the fourth on.
func Repeats(runs []Summary, p sample.Plan, env sample.Environment) (out []sample.Prior) {
	if !analysis.Paces(env.Congestion) {
		return nil
	}
	key, now := planKey(p), []Summary{}
	for _, r := range runs {
		if key != "" && r.Plan == key && r.Kernel == env.Kernel && r.CPU == env.CPUModel &&
			len(now) < newest {
			now = append(now, r)
		}
	}
	asked := map[sample.Prior]bool{}
	for _, c := range p.Cells {
		l := p.Loads.At(c)
		of := sample.Prior{From: string(c.From), Load: c.Load, Point: c.Point, On: c.On, Pin: c.Pin,
			Metric: analysis.Rate(l)}
		if l.Slice == 0 || c.Shape.Crowd() || asked[of] || workload.Of(l).Primary != of.Metric {
			continue
		}
		asked[of] = true
		variance, freedom := between(now, of)
		if freedom == 0 {
			continue
		}
		known := analysis.Repeated
		x := of
		x.Freedom = min(known.Freedom+anotherRun*freedom, mostRuns)
		x.Variance = (known.Freedom*known.Variance + anotherRun*freedom*variance) /
			(known.Freedom + anotherRun*freedom)
		out = append(out, x)
	}
	return out
}

// between returns the variance of the rows' logarithmic ratios between runs, and the number of runs
// but one, or 0 if no row has two.
func between(runs []Summary, of sample.Prior) (variance, freedom float64) {
	rows := map[string][]float64{}
	for _, r := range runs {
		for _, x := range r.Rows {
			if x.Median > 0 && x.Tune == "" && x.From == of.From && x.Load == of.Load &&
				x.On == of.On && x.Pin == of.Pin && x.Metric == of.Metric {
				rows[x.Label] = append(rows[x.Label], math.Log(x.Median))
			}
		}
	}
	squares, n := 0.0, 0.0
	for _, xs := range rows {
		mean := 0.0
		for _, x := range xs {
			mean += x / float64(len(xs))
		}
		for _, x := range xs {
			squares += (x - mean) * (x - mean)
		}
		n += float64(len(xs) - 1)
		freedom = max(freedom, float64(len(xs)-1))
	}
	if n == 0 {
		return 0, 0
	}
	return squares / n, freedom
}

// Priors returns the expected differences between epochs in a run of the plan: the median over
// earlier runs, given the newest first, with the same kernel, CPU, load and placement.
func Priors(runs []Summary, p sample.Plan, env sample.Environment) (out []sample.Prior) {
	asked := map[sample.Prior]bool{}
	for _, c := range p.Cells {
		l := p.Loads.At(c)
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
