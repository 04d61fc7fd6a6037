package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Quantile is a point of a cell's latency distribution, over the samples of all rounds. It is never
// the median: LatencyP50 is the median of the rounds' medians.
type Quantile struct {
	Percentile float64 `json:"percentile"`
	Seconds    float64 `json:"seconds"`
}

// LatencyAt returns a percentile, 0 to 100, of the cell's latencies in seconds; the 50th is the
// metric LatencyP50. ok is false if it is not known.
func (c Cell) LatencyAt(percentile float64) (seconds float64, ok bool) {
	const half = 50
	if percentile == half {
		m, ok := c.Metrics[workload.LatencyP50]
		return m.Median, ok
	}
	for _, q := range c.Latencies {
		if q.Percentile == percentile {
			return q.Seconds, true
		}
	}
	return 0, false
}

// CPUUse holds the shares of one CPU's time in a cell's windows. They add up to 1.
type CPUUse struct {
	Machine string  `json:"machine,omitempty"` // "" for the machine that measured
	CPU     int     `json:"cpu"`
	User    float64 `json:"user"`
	System  float64 `json:"system"`
	IRQ     float64 `json:"irq"`
	SoftIRQ float64 `json:"softirq"`
	Steal   float64 `json:"steal"`
	Idle    float64 `json:"idle"` // without IOWait

	Nice      float64 `json:"nice,omitempty"`
	IOWait    float64 `json:"iowait,omitempty"`
	Guest     float64 `json:"guest,omitempty"`
	GuestNice float64 `json:"guest_nice,omitempty"`
}

// CPUKinds returns mpstat's column names, in its order, without the per cent sign.
func CPUKinds() []string {
	return []string{"usr", "nice", "sys", "iowait", "irq", "soft", "steal", "guest", "gnice",
		"idle"}
}

// Shares returns the shares in the order of CPUKinds.
func (u CPUUse) Shares() []float64 {
	return []float64{u.User, u.Nice, u.System, u.IOWait, u.IRQ, u.SoftIRQ, u.Steal, u.Guest,
		u.GuestNice, u.Idle}
}

// Counted holds a hop's counts in all good visits. A guard is not on the path and must not have
// counted the load.
type Counted struct {
	Kind            string `json:"kind"`
	Name            string `json:"name"`
	Where           string `json:"where"`
	Guard           bool   `json:"guard,omitempty"`
	ForwardBytes    uint64 `json:"forward_bytes"`
	ForwardPackets  uint64 `json:"forward_packets"`
	BackwardBytes   uint64 `json:"backward_bytes"`
	BackwardPackets uint64 `json:"backward_packets"`
	Hits            uint64 `json:"hits"`
}

var curve = []float64{1, 5, 10, 25, 75, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99,
	99.995, 99.999}

// beyond is the least number of samples above a percentile that is reported.
const beyond = 10

func (s *Series) latencies() []Quantile {
	if s.merged == nil {
		return nil
	}
	n := float64(s.merged.TotalCount())
	told := slices.DeleteFunc(slices.Clone(curve), func(q float64) bool {
		return n*(1-q/100) < beyond
	})
	at := s.merged.ValueAtPercentiles(told)
	var out []Quantile
	for _, q := range told {
		out = append(out, Quantile{q, float64(at[q]) / nsPerSecond})
	}
	return out
}

const mostCPUs = 32

// cpuUses returns the use of each CPU over all visits, or of the mostCPUs least idle ones, and that
// of all CPUs of each machine. It leaves out visits without counts of CPUs, and those of another
// number of CPUs than the first.
func (s *Series) cpuUses() (each, all []CPUUse) {
	var sums []sample.CPU
	var of *sample.Visit
	for _, v := range s.Visits {
		if len(sums) == 0 {
			sums, of = make([]sample.CPU, len(v.Machine)), v
		}
		if len(v.Machine) != len(sums) {
			continue
		}
		for i, c := range v.Machine {
			sums[i] = c.Combine(sums[i], func(x, y float64) float64 { return x + y })
		}
	}
	var machines []string
	whole := map[string]sample.CPU{}
	for i, c := range sums {
		use, ok := useOf(machineOf(of, i), c)
		if !ok {
			continue
		}
		each = append(each, use)
		if !slices.Contains(machines, use.Machine) {
			machines = append(machines, use.Machine)
		}
		whole[use.Machine] = c.Combine(whole[use.Machine],
			func(x, y float64) float64 { return x + y })
	}
	for _, name := range machines {
		use, _ := useOf(name, whole[name])
		use.CPU = 0
		all = append(all, use)
	}
	if len(each) > mostCPUs {
		busiest := slices.Clone(each)
		slices.SortStableFunc(busiest, func(a, b CPUUse) int { return cmp.Compare(a.Idle, b.Idle) })
		each = slices.DeleteFunc(each, func(u CPUUse) bool {
			return !slices.Contains(busiest[:mostCPUs], u)
		})
	}
	return each, all
}

// useOf returns the shares of a CPU's time; ok is false if it has none.
func useOf(machine string, c sample.CPU) (u CPUUse, ok bool) {
	all := c.All()
	if !(all > 0) || math.IsInf(all, 0) {
		return u, false
	}
	return CPUUse{Machine: machine, CPU: c.ID, User: c.User / all, System: c.System / all,
		IRQ: c.IRQ / all, SoftIRQ: c.SoftIRQ / all, Steal: c.Steal / all, Idle: c.Idle / all,
		Nice: c.Nice / all, IOWait: c.IOWait / all, Guest: c.Guest / all,
		GuestNice: c.GuestNice / all}, true
}

// machineOf returns the machine of the visit's CPU i, or "" for the machine that measured, whose
// CPUs come first.
func machineOf(v *sample.Visit, i int) string {
	others := 0
	for _, m := range v.Machines {
		others += m.CPUs
	}
	i -= len(v.Machine) - others
	for _, m := range v.Machines {
		if i >= 0 && i < m.CPUs {
			return m.Name
		}
		i -= m.CPUs
	}
	return ""
}

// counted returns the sums of the hops' counts over all visits. The first own hops are on the path,
// the others are guards.
func (s *Series) counted(own int) []Counted {
	var out []Counted
	for _, v := range s.Visits {
		if out == nil {
			for i, h := range v.Hops {
				out = append(out, Counted{Kind: h.Kind, Name: h.Name, Where: h.Where,
					Guard: i >= own})
			}
		}
		for i, h := range v.Hops {
			if i >= len(out) || out[i].Kind != h.Kind || out[i].Where != h.Where {
				break
			}
			d := h.After.Sub(h.Before)
			out[i].ForwardBytes += d.ForwardBytes
			out[i].ForwardPackets += d.ForwardPackets
			out[i].BackwardBytes += d.BackwardBytes
			out[i].BackwardPackets += d.BackwardPackets
			out[i].Hits += d.Hits
		}
	}
	return out
}

// roundsIn returns the rounds that have a value, or nil if they are 0 to n-1.
func roundsIn(byRound map[int]float64) []int {
	rounds := slices.Sorted(maps.Keys(byRound))
	if n := len(rounds); n == 0 || rounds[0] == 0 && rounds[n-1] == n-1 {
		return nil
	}
	return rounds
}

// leastConnections is the least number of connections whose share of a proxy's memory is
// measurable.
const leastConnections = 100

// ProxyMemory is the memory of a path's proxy, in bytes.
type ProxyMemory struct {
	Port        int64 `json:"port_bytes"`   // before the first client: the cost of a published port
	Loaded      int64 `json:"loaded_bytes"` // median of the visits
	Connections int   `json:"connections"`
	// growth per 1,000 connections; 0: too few were open
	Per1000 int64 `json:"per_1000_bytes"`
}

// proxyMemory returns the memory of the path's proxy, or nil if the path has no proxy or its memory
// is not known.
func (s *Series) proxyMemory(p sample.Path) *ProxyMemory {
	var loaded []float64
	for _, v := range s.Visits {
		if v.Proxy != nil && v.Proxy.Memory > 0 {
			loaded = append(loaded, float64(v.Proxy.Memory))
		}
	}
	if len(loaded) == 0 || p.ProxyMemory == 0 {
		return nil
	}
	crowd := max(1, s.Cell.Shape.Clients) * max(1, s.Cell.Shape.Procs)
	out := &ProxyMemory{Port: p.ProxyMemory, Loaded: int64(stats.Median(loaded)),
		Connections: max(1, s.Load.Streams) * crowd}
	if more := out.Loaded - out.Port; out.Connections >= leastConnections && more > 0 {
		out.Per1000 = 1000 * more / int64(out.Connections)
	}
	return out
}
