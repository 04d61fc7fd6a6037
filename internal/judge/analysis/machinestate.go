package analysis

import "math"

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
