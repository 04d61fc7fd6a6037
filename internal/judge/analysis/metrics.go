package analysis

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	nsPerSecond = 1e9
	bitsPerByte = 8
)

// Series holds a cell's good visits, and its values by metric and round.
type Series struct {
	Cell   sample.Cell
	Load   sample.Load
	Values map[string]map[int]float64
	merged *hdrhistogram.Histogram            // all rounds' latencies; nil if the load has none
	times  map[string]*hdrhistogram.Histogram // times that only this load measures
	Visits []*sample.Visit
	Traced []*sample.Visit        // good visits in traced epochs, in no other field
	all    []*sample.Visit        // bad visits included
	slices map[int]*sample.Slices // by round; nil if the cell was not sliced
	// windows holds the values by windows of metrics whose Values are by slices. The latter share
	// factor, a logarithm, so their variation over the rounds does not include its error.
	windows map[string]map[int]float64
	factor  stats.Estimate
}

func newSeries(c sample.Cell, l sample.Load) *Series {
	return &Series{Cell: c, Load: l, Values: map[string]map[int]float64{}}
}

// set stores a value of a round. It ignores values that are not finite.
func (s *Series) set(metric string, round int, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	if s.Values[metric] == nil {
		s.Values[metric] = map[int]float64{}
	}
	s.Values[metric][round] = v
}

func (s *Series) add(visit *sample.Visit) {
	s.Visits = append(s.Visits, visit)
	f := workload.FiguresOf(*visit, s.Load, s.Cell.Shape)
	for name, x := range f.Values {
		s.set(name, visit.Round, x)
	}
	if f.Latency != nil {
		if s.merged == nil {
			s.merged = sample.NewHistogram()
		}
		f.Latency.MergeInto(s.merged)
	}
	for name, h := range f.Times {
		if s.times == nil {
			s.times = map[string]*hdrhistogram.Histogram{}
		}
		if s.times[name] == nil {
			s.times[name] = sample.NewHistogram()
		}
		h.MergeInto(s.times[name])
	}
	s.addSlices(visit)
}

// Metric summarizes one metric of the series. ok is false if it has no values.
func (s *Series) Metric(name string) (m Metric, ok bool) {
	byRound := s.Values[name]
	if len(byRound) == 0 {
		return m, false
	}
	xs := Ordered(byRound)
	sum := stats.Summarize(xs).By(s.Factor(name), stats.Confidence)
	if sum.N == 0 {
		return m, false
	}
	of := workload.MetricOf(name, s.Load)
	m = Metric{Unit: of.Unit, Higher: of.Higher, Median: sum.Median, Low: sum.Low, High: sum.High,
		Rounds: xs, At: roundsIn(byRound)}
	if v, is := s.Merged(name); is && !workload.IsMedian(name) {
		m.Merged = &v
	}
	if workload.Summed(name) {
		total := 0.0
		for _, x := range xs {
			total += x
		}
		m.Merged = &total
	}
	return m, true
}

// Merged returns a metric's percentile over the samples of all rounds. ok is false if it has none.
func (s *Series) Merged(metric string) (seconds float64, ok bool) {
	of := workload.MetricOf(metric, s.Load)
	h := s.times[of.Times]
	if of.Times == workload.TimeLatency {
		h = s.merged
	}
	if h == nil {
		return 0, false
	}
	return float64(h.ValueAtQuantile(of.Quantile)) / nsPerSecond, true
}

func (s *Series) seen() workload.Seen {
	return workload.Seen{Load: s.Load, Visits: s.Visits, All: s.all, Merged: s.Merged,
		Median: func(metric string) float64 { m, _ := s.Metric(metric); return m.Median }}
}

// foreign returns the number of CPUs that other programs kept busy, without interrupts. Without
// CONFIG_IRQ_TIME_ACCOUNTING it is an underestimate: softirq work is then in the processes' clocks.
func (s *Series) foreign() float64 {
	c := s.cpu()
	if c.elapsed < workload.Shortest {
		return 0
	}
	interrupts := 0.0
	for _, v := range s.Visits {
		for _, cpu := range v.Machine {
			interrupts += cpu.IRQ + cpu.SoftIRQ
		}
	}
	return max(0, c.Rest-interrupts) / c.elapsed
}

func (s *Series) split() CPUSplit {
	c, w := s.cpu(), workload.Of(s.Load)
	c.Unit = workload.MetricOf(w.CPU(), s.Load).Unit
	work := 0.0
	for _, v := range s.Visits {
		if v.Elapsed >= workload.Shortest {
			work += w.Work(*v, s.Load)
		}
	}
	if work < 1 {
		return CPUSplit{Unit: c.Unit}
	}
	for _, f := range []*float64{&c.Client, &c.Server, &c.Proxy, &c.Rest} {
		*f /= work
	}
	return c.CPUSplit
}

type cpuTime struct {
	CPUSplit
	elapsed float64
}

// cpu returns the CPU time of all visits together, because the ticks of /proc/stat are too coarse
// for a single one.
func (s *Series) cpu() cpuTime {
	var c cpuTime
	busy := 0.0
	for _, v := range s.Visits {
		if v.Elapsed < workload.Shortest {
			continue
		}
		c.elapsed += v.Elapsed
		busy += workload.Busy(*v)
		c.Client += v.Client.CPU
		c.Server += v.Server.CPU
		if v.Proxy != nil {
			c.Proxy += v.Proxy.CPU
		}
	}
	c.Rest = max(0, busy-c.Client-c.Server-c.Proxy)
	return c
}
