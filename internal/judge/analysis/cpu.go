package analysis

import (
	"maps"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func cpuMetric(l sample.Load) string { return workload.Of(l).CPU() }

// windows returns cell i's windows by round. Those of a baseline or control include both cells',
// because they share a path.
func (j *Run) windows(i int) map[int]stats.Window {
	cells := []int{i}
	g := groupOf(j.Series[i].Cell)
	if c, ok := j.ctl[g]; ok {
		if b, has := j.base[g]; has && (i == b || i == c) {
			cells = []int{b, c}
		}
	}
	out := map[int]stats.Window{}
	for _, k := range cells {
		for _, v := range j.Series[k].Visits {
			if v.Slices == nil || v.Elapsed < workload.Shortest {
				continue
			}
			w := out[v.Round]
			out[v.Round] = stats.Window{All: w.All + notIdle(*v),
				Part: w.Part + v.Client.CPU + v.Server.CPU}
		}
	}
	return out
}

// notIdle returns the CPU time, in s, during which the machine's CPUs were not idle. It is computed
// from idle time, because a tickless kernel measures that exactly but samples busy time at its
// ticks, which short work escapes. If other machines took part, it returns the busy time, because
// their windows differ slightly in length.
func notIdle(v sample.Visit) float64 {
	if len(v.Machines) > 0 {
		return workload.Busy(v)
	}
	sum := 0.0
	for _, c := range v.Machine {
		sum += max(0, v.Elapsed-c.Idle-c.IOWait-c.Steal)
	}
	return sum
}

// cpuBySlices replaces the CPU time per unit of work of each round by the CPU time of both ends in
// the round's median slice, times the ratio of the whole machine's to theirs, if the error of that
// ratio is known.
func (j *Run) cpuBySlices(i int) {
	s := j.Series[i]
	if s.slices == nil {
		return
	}
	e := stats.LogFactor(Ordered(j.windows(i)))
	if e.Pairs == 0 {
		return
	}
	costs := map[int]float64{}
	for round, x := range s.slices {
		// cost is NaN if the file is older
		if cost := math.Exp(e.Centre) * stats.Median(x.CPU); cost > 0 {
			costs[round] = cost
		}
	}
	if len(costs) == 0 {
		return
	}
	s.factor, s.windows = e, map[string]map[int]float64{}
	for _, m := range []string{cpuMetric(s.Load), workload.PerBusyCore} {
		s.windows[m] = maps.Clone(s.Values[m])
	}
	for round, cost := range costs {
		s.set(cpuMetric(s.Load), round, cost)
		if cpuMetric(s.Load) == workload.CPUPerByte {
			s.set(workload.PerBusyCore, round, bitsPerByte/cost)
		}
	}
}

func (s *Series) byRound(metric string) map[int]float64 {
	if xs, ok := s.windows[metric]; ok {
		return xs
	}
	return s.Values[metric]
}

// Factor returns the logarithm of the factor that all of the metric's Values have in common, whose
// error their variation does not show. Its zero value: there is none.
func (s *Series) Factor(metric string) stats.Estimate {
	if _, ok := s.windows[metric]; ok {
		return s.factor
	}
	return stats.Estimate{}
}

// wholeCPU extends own, an estimate for the CPU time of both ends, to the whole machine's. Pairs is
// 0 if there are too few windows.
func (j *Run) wholeCPU(own stats.Estimate, i, b int) stats.Estimate {
	its, all := j.windows(b), j.windows(i)
	if maps.Equal(all, its) && len(its) > 0 {
		return own
	}
	var x, y []stats.Window
	for _, round := range slices.Sorted(maps.Keys(all)) {
		if w, ok := its[round]; ok {
			x, y = append(x, all[round]), append(y, w)
		}
	}
	f := stats.Factors(x, y)
	if own.Pairs == 0 || f.Pairs == 0 {
		return stats.Estimate{}
	}
	out := own.Plus(f)
	out.Pairs, out.Epochs = own.Pairs, own.Epochs
	return out
}
