package analysis

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

var units = map[string]string{
	Throughput: "bit/s", PerBusyCore: "bit/s",
	LatencyP50: "s", LatencyP90: "s", LatencyP99: "s", LatencyP999: "s", LatencyMax: "s",
	Transactions: "1/s", CPUPerByte: "s/B", CPUPerTrip: "s",
	Connections: "1/s", CPUPerConnection: "s", ConnectP50: "s", ConnectP99: "s", FailedConnections: "connections",
	ClientMean: "", ClientMin: "", ClientMax: "", ProcessMin: "", // as the load's rate
	ClientFairness: "1", ProcessFairness: "1", Memory: "B", Setup: "s", StartSpread: "s",
	QueryP50: "s", QueryP99: "s", Elapsed: "s", BusyCPUs: "CPUs",
	ConnectTime: "s", GapSlow: "s", Stalls: "stalls", Words: "tokens", WordRate: "1/s",
	ThroughputOut: "bit/s", ThroughputBack: "bit/s", CompletionTime: "s", ZerocopyCopied: "1",
	BesideThroughput: "bit/s", SendsHeld: "1", OwnLatenessP50: "s", OwnLatenessP99: "s",
	FirstTokenP50: "s", FirstTokenP99: "s", GapP50: "s", GapP99: "s", GapMax: "s", ResponseTime: "s", Overrun: "s",
	Glued: "1", TokenRate: "1/s", CPUPerToken: "s", TransitP50: "s", TransitP99: "s", LateP99: "s", LateMax: "s", WaitP99: "s", WaitMax: "s",
	Retransmits: "segments", RTT: "s", Cwnd: "segments", Involuntary: "switches",
	Packets: "1/s", Loss: "1", SocketLoss: "1", Reordered: "1", Duplicates: "1", Offered: "bit/s", CPUPerPacket: "s",
	RetransmissionRate: "1",
}

// unitOf is the unit of a metric under a load.
func unitOf(metric string, l sample.Load) string {
	if g, ok := l.Gauge(metric); ok {
		return g.Unit
	}
	if u := units[metric]; u != "" {
		return u
	}
	return units[Rate(l)]
}

// percentiles of the latency metrics; 100 is the maximum.
var percentiles = map[string]float64{
	LatencyP50: 50, LatencyP90: 90, LatencyP99: 99, LatencyP999: 99.9, LatencyMax: 100,
}

const (
	nsPerSecond = 1e9
	bitsPerByte = 8
)

// shortest is the least time that a share of it means something, in seconds.
const shortest = 1e-6

// series is a cell's good visits: metric -> round -> value.
type series struct {
	cell   sample.Cell
	load   sample.Load
	values map[string]map[int]float64
	merged *hdrhistogram.Histogram            // all rounds' latencies; nil if the load has none
	times  map[string]*hdrhistogram.Histogram // all rounds' of what only this load times
	visits []*sample.Visit
	all    []*sample.Visit // the bad ones as well
}

func newSeries(c sample.Cell, l sample.Load) *series {
	return &series{cell: c, load: l, values: map[string]map[int]float64{}}
}

// set notes a value; one that is not finite is none.
func (s *series) set(metric string, round int, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	if s.values[metric] == nil {
		s.values[metric] = map[int]float64{}
	}
	s.values[metric][round] = v
}

// add adds a witnessed visit. A latency histogram that cannot be decoded
// leaves the visit without latencies.
func (s *series) add(visit *sample.Visit) {
	v, l := *visit, s.load
	s.visits = append(s.visits, visit)
	busy := busyTime(v)
	if trafficOf(l).foreign {
		trafficOf(l).add(s, v, l, busy)
		return
	}
	s.set(Involuntary, v.Round, float64(v.Client.Involuntary+v.Server.Involuntary))
	if !trafficOf(l).brief {
		s.set(Retransmits, v.Round, float64(v.Client.TCP.Retransmits+v.Server.TCP.Retransmits))
		s.set(RTT, v.Round, v.Client.TCP.RTT)
		s.set(Cwnd, v.Round, float64(sender(v, l).TCP.Cwnd))
	}
	if s.cell.Shape.Crowd() {
		s.addCrowd(v, busy)
		return
	}
	trafficOf(l).add(s, v, l, busy)
}

func sender(v sample.Visit, l sample.Load) sample.Party {
	if l.Reverse {
		return v.Server
	}
	return v.Client
}

func receiver(v sample.Visit, l sample.Load) sample.Party {
	if l.Reverse {
		return v.Client
	}
	return v.Server
}

// addBulk adds a throughput, in bytes a second.
func (s *series) addBulk(v sample.Visit, rate, busy float64) {
	if !(rate > 0) {
		return
	}
	bits := bitsPerByte * rate
	s.set(Throughput, v.Round, bits)
	if busy <= 0 || v.Elapsed <= 0 {
		return
	}
	// The machine's window and the receiver's differ by a few µs: rates,
	// not sums, are divided.
	perSecond := busy / v.Elapsed
	s.set(CPUPerByte, v.Round, perSecond/rate)
	cores := len(v.Machine)
	s.set(PerBusyCore, v.Round, stats.PerBusyCore(bits, 1-perSecond/float64(cores), cores))
}

// addLatency adds the latencies of a visit.
func (s *series) addLatency(v sample.Visit) {
	h := decode(v.Latency)
	if h == nil {
		return
	}
	for name, q := range percentiles {
		s.set(name, v.Round, float64(h.ValueAtPercentile(q))/nsPerSecond)
	}
	if s.merged == nil {
		s.merged = sample.NewHistogram()
	}
	h.MergeInto(s.merged)
}

// addTimes adds percentiles of what a load times besides its latency.
func (s *series) addTimes(v sample.Visit, name string, percentiles map[string]float64) {
	h := decode(v.Times[name])
	if h == nil {
		return
	}
	for metric, q := range percentiles {
		s.set(metric, v.Round, float64(h.ValueAtPercentile(q))/nsPerSecond)
	}
}

// decode is the histogram; nil if there is none, it holds nothing or it cannot
// be decoded.
func decode(e *sample.EncodedHisto) *hdrhistogram.PackedHistogram {
	if e == nil {
		return nil
	}
	h, err := e.Decode()
	if err != nil || h.TotalCount() == 0 {
		return nil
	}
	return h
}

// addTrips adds a rate of round trips.
func (s *series) addTrips(v sample.Visit, rate, busy float64) {
	if !(rate > 0) {
		return
	}
	s.set(Transactions, v.Round, rate)
	if busy > 0 && v.Elapsed > 0 {
		s.set(CPUPerTrip, v.Round, busy/v.Elapsed/rate)
	}
}

// busyTime is the CPU time in the window in which some CPU of the machine was
// not idle, in seconds. Time that a hypervisor took away is not cost.
func busyTime(v sample.Visit) float64 {
	busy := 0.0
	for _, c := range v.Machine {
		busy += c.Busy()
	}
	return busy
}

// metric summarizes one metric of the series; ok is false if it has none.
func (s *series) metric(name string) (m Metric, ok bool) {
	byRound := s.values[name]
	if len(byRound) == 0 {
		return m, false
	}
	xs := ordered(byRound)
	sum := stats.Summarize(xs)
	if sum.N == 0 {
		return m, false
	}
	m = Metric{Unit: unitOf(name, s.load), Higher: higherIsBetter(s.load, name), Median: sum.Median, Low: sum.Low, High: sum.High, Rounds: xs}
	if q, is := percentiles[name]; is && s.merged != nil {
		v := float64(s.merged.ValueAtQuantile(q)) / nsPerSecond
		m.Merged = &v
	}
	if v, is := s.mergedTime(name); is {
		m.Merged = &v
	}
	if name == Stalls { // most visits have none
		total := 0.0
		for _, x := range xs {
			total += x
		}
		m.Merged = &total
	}
	return m, true
}

// foreign is the CPUs that other programs kept busy: what is left of the
// machine's busy time without the run's processes and without interrupts.
// (With CONFIG_IRQ_TIME_ACCOUNTING softirq work is not in the processes'
// clocks; without it this is an underestimate.)
func (s *series) foreign() float64 {
	c := s.cpu()
	if c.elapsed < shortest {
		return 0
	}
	interrupts := 0.0
	for _, v := range s.visits {
		for _, cpu := range v.Machine {
			interrupts += cpu.IRQ + cpu.SoftIRQ
		}
	}
	return max(0, c.Rest-interrupts) / c.elapsed
}

// split is who spent the CPU time of a unit of work.
func (s *series) split() CPUSplit {
	c, t := s.cpu(), trafficOf(s.load)
	c.Unit = units[CPUPerByte]
	if t.trips {
		c.Unit = units[CPUPerTrip]
	}
	work := 0.0
	for _, v := range s.visits {
		if v.Elapsed >= shortest {
			work += t.work(*v, s.load)
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

// cpuTime is CPU seconds in all windows together.
type cpuTime struct {
	CPUSplit
	elapsed float64
}

// cpu sums over all visits: /proc/stat's ticks are too coarse for one.
func (s *series) cpu() cpuTime {
	var c cpuTime
	busy := 0.0
	for _, v := range s.visits {
		if v.Elapsed < shortest {
			continue // the meters were not read in time
		}
		c.elapsed += v.Elapsed
		busy += busyTime(*v)
		c.Client += v.Client.CPU
		c.Server += v.Server.CPU
		if v.Proxy != nil {
			c.Proxy += v.Proxy.CPU
		}
	}
	c.Rest = max(0, busy-c.Client-c.Server-c.Proxy)
	return c
}
