package analysis

import (
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Value returns the median of a figure over its rounds, divided by its share; ok is false if the
// file lacks it.
func (p *Pairing) Value(f Figure) (m Metric, ok bool) {
	for i, s := range p.j.Series {
		if !p.holds(i, f.Cell) {
			continue
		}
		if m, ok = s.Metric(f.Metric); ok {
			by := 1 / f.share()
			m.Median, m.Low, m.High = m.Median*by, m.Low*by, m.High*by
			m.Merged = scaledBy(m.Merged, by)
			for k := range m.Rounds {
				m.Rounds[k] *= by
			}
			return m, true
		}
	}
	return Metric{}, false
}

func scaledBy(x *float64, by float64) *float64 {
	if x == nil {
		return nil
	}
	y := *x * by
	return &y
}

// CPUTime holds the use of the machine's CPUs in a cell's windows, as in mpstat and top.
type CPUTime struct {
	Idle  *Metric  // share of all CPUs' time, 0 to 1, without waiting for I/O; nil: not known
	Proxy *Metric  // share of one core: 1.2 is more than one; nil: the path has no proxy
	CPUs  []CPUUse // all rounds together
	All   []CPUUse // of each machine's CPUs together; CPU is 0
}

// CPUTime returns the CPUs' use in a cell's windows; ok is false if the file has no result for c.
func (p *Pairing) CPUTime(c sample.Cell) (t CPUTime, ok bool) {
	for i, s := range p.j.Series {
		if !p.holds(i, c) {
			continue
		}
		idle := map[int]float64{}
		for _, v := range s.Visits {
			all, rest := 0.0, 0.0
			for _, u := range v.Machine {
				all += u.All()
				rest += u.Idle
			}
			if all > 0 {
				idle[v.Round] = rest / all
			}
		}
		t.Idle, t.Proxy = shareOf(idle), s.proxyCore()
		t.CPUs, t.All = s.cpuUses()
		return t, true
	}
	return CPUTime{}, false
}

// proxyCore returns the proxy's share of a core, or nil if the path has none.
func (s *Series) proxyCore() *Metric {
	byRound := map[int]float64{}
	for _, v := range s.Visits {
		if v.Proxy != nil && v.Elapsed >= workload.Shortest {
			byRound[v.Round] = v.Proxy.CPU / v.Elapsed
		}
	}
	return shareOf(byRound)
}

func shareOf(byRound map[int]float64) *Metric {
	s := stats.Summarize(Ordered(byRound))
	if s.N == 0 {
		return nil
	}
	return &Metric{Unit: "1", Median: s.Median, Low: s.Low, High: s.High, Rounds: Ordered(byRound),
		At: roundsIn(byRound)}
}
