package analysis

import (
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	stealLimit  = 0.02 // share of all CPU time
	otherLimit  = 0.10 // CPUs kept busy by other programs
	tailSamples = 10   // samples that a meaningful percentile has beyond it
)

func (j *Run) cellWarnings(i int) []Warning {
	s := j.Series[i]
	out := []Warning{}
	metric := PrimaryOf(s.Load, s.Cell.Shape)
	xs := Ordered(s.Values[metric])
	if len(xs) < stats.MinValues && s.slices == nil {
		f := Finding{Code: FewRounds, N: len(xs)}
		if j.File.End.Reason == sample.EndedByBudget {
			f.Why = sample.EndedByBudget
		}
		out = append(out, warn(f))
	}
	sliced := j.sliceWarnings(i)
	out = append(out, sliced...)
	described := slices.ContainsFunc(sliced, func(w Warning) bool {
		return w.Code == InStates || w.Code == Varying
	})
	if low, high := stats.Clusters(xs); low != nil && !described {
		f := Finding{Code: Bimodal}
		for _, xs := range [][]float64{low, high} {
			f.Prices = append(f.Prices, Price{Unit: workload.MetricOf(metric, s.Load).Unit,
				Median: stats.Median(xs), Low: xs[0], N: len(xs)})
		}
		out = append(out, warn(f))
	}
	load := workload.Of(s.Load)
	if s.merged != nil {
		if w, ok := thinTail(s.merged.TotalCount(), load); ok {
			out = append(out, w)
		}
	}
	out = append(out, s.doubts(workload.First)...)
	if j.wireShare(s) > wireOver {
		out = append(out, warn(Finding{Code: OverWire}))
	}
	out = append(out, j.fullWarnings(i)...)
	if w, ok := j.narrowWarning(s); ok {
		out = append(out, w)
	}
	if w, ok := j.forgiven(i); ok {
		out = append(out, w)
	}
	out = append(out, s.doubts(workload.BeforeLate)...)
	l := j.File.Header.Plan.LoadFor(s.Cell)
	late := 0
	for _, v := range s.Visits {
		if max(v.Client.Late, v.Server.Late) > workload.LateLimit*workload.Start(l, *v) {
			late++
		}
	}
	if 2*late > len(s.Visits) {
		f := Finding{Code: Late}
		if workload.BulkOf(l).Bytes > 0 {
			f.What = SizedTransfer
		}
		out = append(out, warn(f))
	}
	return append(out, s.doubts(workload.Last)...)
}

func (s *Series) doubts(at workload.Listed) (out []Warning) {
	for _, d := range workload.Of(s.Load).Doubts(at, s.seen()) {
		out = append(out, warn(Finding{Code: d.Code, Load: s.Load.Kind, What: d.What, N: d.N, Of: d.Of,
			Values: d.Values}))
	}
	return out
}

func thinTail(n int64, load workload.Workload) (Warning, bool) {
	for _, p := range []struct {
		name string
		tail float64
	}{{"p99", 0.01}, {"p99.9", 0.001}} {
		if p.tail < load.Tail() {
			break
		}
		if float64(n)*p.tail < tailSamples {
			return warn(Finding{Code: ThinTail, What: p.name, Load: load.Name}), true
		}
	}
	return Warning{}, false
}

// BrokenOff returns the warnings about a run that was killed or aborted. For any other run it
// returns an empty list, not nil.
func BrokenOff(f *sample.File) []Warning {
	out := []Warning{}
	if f.Truncated {
		out = append(out, warn(Finding{Code: Truncated}))
	}
	if f.End.Detail != "" {
		out = append(out, warn(Finding{Code: Aborted, What: f.End.Detail}))
	}
	return out
}

func (j *Run) warnings() []Warning {
	out := []Warning{}
	busy := j.TooBusy()
	if busy != nil {
		out = append(out, warn(*busy))
	}
	out = append(out, BrokenOff(j.File)...)
	for _, f := range j.withoutBaseline() {
		out = append(out, warn(f))
	}
	out = append(out, j.cpuWarnings(busy != nil)...)
	for _, f := range j.mixedPlacements() {
		out = append(out, warn(f))
	}
	for _, f := range j.doubtfulRoutes() {
		out = append(out, Warning{Code: DoubtfulRoutes, Found: &f})
	}
	if cc := j.congestion(); Paces(cc) {
		out = append(out, warn(Finding{Code: Paced, What: cc, Why: j.setsCongestion()}))
	}
	out = append(out, j.cardWarnings()...)
	for _, f := range j.slotBias() {
		out = append(out, warn(f))
	}
	if what := j.sameCore(); what != "" {
		out = append(out, warn(Finding{Code: SameCore, What: what}))
	}
	return out
}

// cpuWarnings returns the warnings about CPU time that the run's processes did not get.
func (j *Run) cpuWarnings(busy bool) (out []Warning) {
	add := func(code string, value float64) {
		out = append(out, warn(Finding{Code: code, Values: map[string]float64{code: value}}))
	}
	var steal, total, idleRest float64
	throttled, n := 0, 0.0
	for i, s := range j.Series {
		_, isBase := j.base[groupOf(s.Cell)]
		for _, v := range s.Visits {
			throttled += v.Throttled
			for _, c := range v.Machine {
				steal += c.Steal
				total += v.Elapsed
			}
		}
		// On the baseline's path all other kernel work is inside the two processes, so the rest
		// belongs to other programs.
		if isBase && j.base[groupOf(s.Cell)] == i {
			idleRest += s.foreign()
			n++
		}
	}
	if total > 0 && steal/total > stealLimit {
		add(Steal, steal/total)
	}
	// The server at the end of a route may run on this machine.
	if !busy && n > 0 && idleRest/n > otherLimit && !j.File.Header.Plan.Foreign() {
		add(OtherLoad, idleRest/n)
	}
	if throttled > 0 {
		add(Throttled, float64(throttled))
	}
	if env := j.File.Header.Environment; env.CgroupCPUs > 0 && env.CgroupCPUs < 2 {
		add(CgroupLimit, env.CgroupCPUs)
	}
	return out
}

// slotBiasFrom is the relative difference of a placebo that causes a warning.
const slotBiasFrom = 0.005

// slotBias reports where the baseline itself, measured in the other modes' slots, certainly differs
// from the baseline. All ratios of these slots may be wrong by that much.
func (j *Run) slotBias() (out []Finding) {
	for _, s := range j.Series {
		if !s.Cell.Placebo {
			continue
		}
		x := j.placebo(groupOf(s.Cell))
		if x == nil || x.Low <= 1 && x.High >= 1 || math.Abs(x.Median-1) <= slotBiasFrom {
			continue
		}
		out = append(out, Finding{Code: SlotBias, Load: s.Cell.Load, From: s.Cell.From,
			Pin: j.pinOf(s.Cell.Pin), What: s.Cell.Name(), Ratios: []Ratio{*x}})
	}
	return out
}

// TooBusy returns the finding that the machine was too busy, or nil. Disturbed slices and visits
// are left out, so the others do not show the lack of CPU time. Before requests to a server, that
// was at rest as far as toll knows: during them, it is not known whose work the server does.
func (j *Run) TooBusy() *Finding {
	during, before := j.File.End.Contention, j.File.Header.Contention
	switch {
	case j.File.Header.Plan.Foreign() && before.TooBusy():
		return &Finding{Code: Busy, What: BeforeRequests, Contention: before}
	case during.TooBusy():
		return &Finding{Code: Busy, What: DuringRun, Contention: during}
	case before.TooBusy() && (during == nil || during.Others == nil):
		return &Finding{Code: Busy, What: AtStart, Contention: before}
	}
	return nil
}

func (j *Run) withoutBaseline() (out []Finding) {
	seen := map[group]bool{}
	for _, s := range j.Series {
		g := groupOf(s.Cell)
		if seen[g] {
			continue
		}
		seen[g] = true
		why := ""
		b, ok := j.base[g]
		switch {
		case !ok:
			why = Unreachable
		case j.Failed(b) && len(j.File.Visits) > 0:
			why = NoResult
		default:
			continue
		}
		out = append(out, Finding{Code: NoBaseline, From: g.from, Load: g.load, Pin: j.pinOf(g.pin),
			What: j.File.Header.Plan.Baseline, Why: why})
	}
	return out
}

// pinOf returns a placement on CPUs, or "" if the run has only one.
func (j *Run) pinOf(pin string) string {
	if len(j.File.Header.Plan.Pins) > 1 {
		return pin
	}
	return ""
}

func (j *Run) congestion() string {
	for _, s := range j.Series {
		if s.Cell.Load != workload.Bulk {
			continue
		}
		if p, ok := j.File.Header.PathOf(s.Cell); ok {
			return p.Sysctls["net.ipv4.tcp_congestion_control"]
		}
	}
	return ""
}

// setsCongestion returns what sets the congestion control. Containers that the lab did not build
// get the machine's.
func (j *Run) setsCongestion() string {
	real := false
	for _, s := range j.Series {
		p, _ := j.File.Header.PathOf(s.Cell)
		if p.Facts["server node"] != "" {
			return ByNodes
		}
		real = real || s.Cell.On != sample.Lab && s.Cell.On != ""
	}
	if real {
		return ByMachine
	}
	return ByFlag
}

// sameCore returns SharedCore or OnlyCPU if client and server were on one core, unless the plan or
// a single-core machine required that.
func (j *Run) sameCore() string {
	p := j.File.Header.Plan
	far := slices.IndexFunc(p.Pins, func(x sample.Pinning) bool { return x.Name == sample.PinFar })
	switch {
	case far >= 0 && p.Pins[far].CPUs.SameCore, len(p.Pins) == 0 && p.CPUs.SameCore:
		return SharedCore
	case far < 0 && strings.Contains(p.Pin, sample.PinFar):
		return OnlyCPU
	case len(p.Pins) > 0:
		return ""
	}
	for _, v := range j.File.Visits {
		if len(v.Machine) > 0 {
			if len(v.Machine) == 1 {
				return SharedCore
			}
			break
		}
	}
	return ""
}
