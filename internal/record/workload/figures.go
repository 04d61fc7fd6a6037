package workload

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	nsPerSecond = 1e9
	bitsPerByte = 8
)

// Shortest is the least duration, in seconds, for which a share is meaningful.
const Shortest = 1e-6

// Figures are one visit's values of each metric, in base units.
type Figures struct {
	Values map[string]float64
	// Latency and Times, by name, have the metrics' percentiles; nil if missing.
	Latency *hdrhistogram.PackedHistogram
	Times   map[string]*hdrhistogram.PackedHistogram

	busy float64 // the machine's CPU time in the window, in seconds
}

// FiguresOf returns the figures of a visit to a cell of that shape. Percentiles of malformed
// histograms are missing.
func FiguresOf(v sample.Visit, l sample.Load, shape sample.Shape) Figures {
	w, f := Of(l), Figures{Values: map[string]float64{}, busy: Busy(v)}
	if w.Foreign {
		w.figures(&f, v, l)
		return f
	}
	f.set(Involuntary, float64(v.Client.Involuntary+v.Server.Involuntary))
	if !w.Brief {
		f.set(Retransmits, float64(v.Client.TCP.Retransmits+v.Server.TCP.Retransmits))
		f.set(RTT, v.Client.TCP.RTT)
		f.set(Cwnd, float64(sender(v, l).TCP.Cwnd))
	}
	if shape.Crowd() {
		f.crowd(v, w)
	} else {
		w.figures(&f, v, l)
	}
	return f
}

// Busy returns the time in which the machine's CPUs were not idle, in seconds, without what a
// hypervisor took.
func Busy(v sample.Visit) float64 {
	busy := 0.0
	for _, c := range v.Machine {
		busy += c.Busy()
	}
	return busy
}

// set ignores infinity and NaN.
func (f *Figures) set(metric string, x float64) {
	if !math.IsNaN(x) && !math.IsInf(x, 0) {
		f.Values[metric] = x
	}
}

func sender(v sample.Visit, l sample.Load) sample.Party {
	if BulkOf(l).Reverse {
		return v.Server
	}
	return v.Client
}

func receiver(v sample.Visit, l sample.Load) sample.Party {
	if BulkOf(l).Reverse {
		return v.Client
	}
	return v.Server
}

func (f *Figures) bytes(v sample.Visit, rate float64) {
	if !(rate > 0) {
		return
	}
	bits := bitsPerByte * rate
	f.set(Throughput, bits)
	if f.busy <= 0 || v.Elapsed <= 0 {
		return
	}
	// The machine's window and the receiver's differ by a few µs, so rates are divided, not sums.
	perSecond := f.busy / v.Elapsed
	f.set(CPUPerByte, perSecond/rate)
	cores := len(v.Machine)
	f.set(PerBusyCore, OnBusyCore(bits, 1-perSecond/float64(cores), cores))
}

// OnBusyCore returns a throughput per busy core. idle is the idle share of the machine's CPU time.
func OnBusyCore(throughput, idle float64, cores int) float64 {
	return throughput / ((1 - idle) * float64(cores))
}

func (f *Figures) trips(v sample.Visit, rate float64) {
	if !(rate > 0) {
		return
	}
	f.set(Transactions, rate)
	if f.busy > 0 && v.Elapsed > 0 {
		f.set(CPUPerTrip, f.busy/v.Elapsed/rate)
	}
}

func (f *Figures) roundTrips(v sample.Visit) {
	f.latency(v)
	f.trips(v, float64(v.Client.Trips)/v.Client.Window)
}

func (f *Figures) latency(v sample.Visit) {
	if h := decode(v.Latency); h != nil {
		f.percentiles(TimeLatency, h)
		f.Latency = h
	}
}

func (f *Figures) times(v sample.Visit, name string) {
	if h := decode(v.Times[name]); h != nil {
		f.percentiles(name, h)
	}
}

// merged keeps the histograms, so that a run has the percentiles of all its samples.
func (f *Figures) merged(v sample.Visit) {
	f.Times = map[string]*hdrhistogram.PackedHistogram{}
	for name, e := range v.Times {
		if h := decode(e); h != nil {
			f.percentiles(name, h)
			f.Times[name] = h
		}
	}
}

func (f *Figures) percentiles(name string, h *hdrhistogram.PackedHistogram) {
	for _, m := range percentiles[name] {
		f.set(m.Name, float64(h.ValueAtPercentile(m.Quantile))/nsPerSecond)
	}
}

// decode returns nil if the histogram is absent, empty or malformed.
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

func perSecond(n int64, seconds float64) float64 {
	if seconds < Shortest {
		return 0
	}
	return float64(n) / seconds
}

func received(v sample.Visit, l sample.Load) float64   { return float64(receiver(v, l).Received) }
func roundTrips(v sample.Visit, _ sample.Load) float64 { return float64(v.Client.Trips) }
