package analysis

import (
	"math"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// states returns a warning if cell i's ratio was different in some epochs. It has the baseline's
// own figures, which show whether the machine was then in another state.
func (j *Run) states(i int) (Warning, bool) {
	s := j.Series[i]
	b, ok := j.BaselineOf(i)
	if !ok || b == i || len(s.slices) == 0 {
		return Warning{}, false
	}
	metric := PrimaryOf(s.Load, s.Cell.Shape)
	rounds, epochs := j.epochs(i, b, metric)
	apart, out := stats.Aside(epochs)
	n, in := len(epochs), 0
	for _, is := range apart {
		if is {
			in++
		}
	}
	if in == 0 {
		return Warning{}, false
	}
	var ratio, speed [2][]float64
	for k, e := range epochs {
		of := 0
		if apart[k] {
			of = 1
		}
		ratio[of] = append(ratio[of], math.Exp(e.Centre))
		if x, ok := j.Series[b].Values[metric][rounds[k]]; ok {
			speed[of] = append(speed[of], x)
		}
	}
	f := Finding{Code: InStates, N: in, Of: n}
	if out {
		f.What = LeftOut
	}
	known := len(speed[0]) > 0 && len(speed[1]) > 0
	for _, of := range []int{1, 0} {
		f.Ratios = append(f.Ratios, Ratio{To: Label(j.Series[b].Cell),
			Median: stats.Median(ratio[of]), N: len(ratio[of])})
		if known {
			f.Prices = append(f.Prices, Price{Unit: workload.MetricOf(metric, s.Load).Unit,
				Median: stats.Median(speed[of]), N: len(speed[of])})
		}
	}
	return warn(f), true
}

// stateShare is the relative difference between a baseline's figures above which they come from
// different states of the machine. A hypervisor that moves virtual CPUs changes them by a quarter
// or more; otherwise the medians of runs vary by a few per cent.
const stateShare = 0.1

// OtherState reports whether two figures of a baseline come from different states of the machine.
func OtherState(a, b float64) bool {
	return a > 0 && b > 0 && math.Abs(math.Log(a/b)) > math.Log1p(stateShare)
}

// States holds a baseline's own figures in two runs.
type States struct {
	Baseline, Metric, Unit string
	Old, New               float64
}

// Other reports whether the machine was in different states.
func (s States) Other() bool { return OtherState(s.Old, s.New) }

// States returns the figures of the baseline that a cell of both runs is compared with. ok is false
// if a run has none, or if the baseline is an endpoint, whose figures are not this machine's.
func (r Runs) States(m Match) (s States, ok bool) {
	a, okOld := r.Old.BaselineOf(m.Old)
	b, okNew := r.New.BaselineOf(m.New)
	if !okOld || !okNew || r.New.File.Header.Plan.Foreign() {
		return s, false
	}
	base := r.New.Series[b]
	metric := PrimaryOf(base.Load, base.Cell.Shape)
	old, okOld := r.Old.Series[a].Metric(metric)
	now, okNew := base.Metric(metric)
	return States{Label(base.Cell), metric, now.Unit, old.Median, now.Median}, okOld && okNew
}
