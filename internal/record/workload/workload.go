// Package workload is the catalogue of loads as data and pure functions: one file for each, with
// everything except its loops, which are in internal/measure/load.
//
// An unknown load, from a later version's file, is treated as bulk.
package workload

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Workload describes a load.
type Workload struct {
	Name string
	// Gist is a few words; "" for loads with commands of their own.
	Gist string
	// About describes the load and what it shows, in a few sentences.
	About string
	Flags []Flag
	// fill sets absent options to the loops' defaults.
	fill   func(l *sample.Load)
	Crowds bool
	UDP    bool
	// FilesFor is the flag whose large values need many open files; "": none does.
	FilesFor string

	// Apart is the reason why the load cannot be measured between two machines; "": it can.
	Apart string

	time      func(l *sample.Load, w sample.Wire)
	check     func(l sample.Load) error
	notSliced func(l sample.Load) string
	threads   func(l sample.Load) int

	// Primary is the metric that decides a cell's toll, Noun its name in words ("0.9 of host's
	// throughput"), and Rate the throughput metric.
	Primary, Noun, Rate string
	// apart replaces Noun next to another load with the same Noun; "": Noun is kept.
	apart string
	// Trips means that the unit of work is a transaction instead of a payload byte.
	Trips bool
	// trip is a transaction in words; "": a round trip.
	trip string
	// Foreign means that an end is a foreign program, so toll does not count the load at both ends.
	Foreign bool
	// Brief means that connections end with their trips, so the kernel keeps no figures of them.
	Brief bool

	words func(l sample.Load) string
	// outline describes the load for a dry run; "": the warm-up and the window do.
	outline func(l sample.Load) string

	// Nodelay sets TCP_NODELAY on both ends by default.
	Nodelay bool

	times func(l sample.Load) []string

	figures func(f *Figures, v sample.Visit, l sample.Load)
	// cpu is the metric of CPU time per unit of work; "": per trip or byte.
	cpu string
	// work returns transactions or payload bytes.
	work func(v sample.Visit, l sample.Load) float64

	doubts func(s Seen) []Doubt
	listed Listed
	limit  func(s Seen) string
	// tail is the thinnest tail of its latencies that is printed; 0: 0.001.
	tail float64
	// moreSamples is the option that gives a visit more samples; "": a longer window.
	moreSamples string
}

// All returns toll's own loads in display order, then others.
func All() []Workload { return slices.Clone(all) }

var all = []Workload{bulk, bulkReverse, rr, crr, udp, udpRR, stream, query, exec, chat, batch, sql, request}

// Find returns the load with that name.
func Find(name string) (w Workload, ok bool) {
	i := slices.IndexFunc(all, func(w Workload) bool { return w.Name == name })
	if i < 0 {
		return w, false
	}
	return all[i], true
}

// Of returns the workload of a load with its options.
func Of(l sample.Load) Workload {
	w, ok := Find(l.Kind)
	if !ok {
		w = unknown(l.Kind)
	}
	if g := firstGauge(l); g.Name != "" {
		w.Primary, w.Rate = g.Name, g.Name
		w.Noun = g.Name
		if g.Name == Elapsed {
			w.Noun = "run time"
		}
	}
	return w
}

// NounAmong returns the load's Noun, or a longer one if another of the loads has the same Noun.
func NounAmong(l sample.Load, loads []sample.Load) string {
	w := Of(l)
	if w.apart != "" && slices.ContainsFunc(loads, func(o sample.Load) bool {
		return o.Kind != l.Kind && Of(o).Noun == w.Noun
	}) {
		return w.apart
	}
	return w.Noun
}

func unknown(name string) Workload {
	w := bulk
	w.Name, w.words = name, func(sample.Load) string { return name }
	return w
}

// Times returns the names of the client's histograms besides that of its trips.
func (w Workload) Times(l sample.Load) []string {
	if w.times == nil {
		return nil
	}
	return w.times(l)
}

// CPU returns the metric of CPU time per unit of work.
func (w Workload) CPU() string {
	switch {
	case w.cpu != "":
		return w.cpu
	case w.Trips:
		return CPUPerTrip
	}
	return CPUPerByte
}

// Unit returns the unit of work in words, such as "byte" or "round trip".
func (w Workload) Unit() string {
	switch {
	case w.trip != "":
		return w.trip
	case w.Trips:
		return "round trip"
	}
	return "byte"
}

// Work returns what a visit accomplished: transactions if Trips is true, else payload bytes.
func (w Workload) Work(v sample.Visit, l sample.Load) float64 { return w.work(v, l) }

// Decides returns the metric that decides the toll: a crowd's is its throughput, because its
// latency is mostly its own queue.
func (w Workload) Decides(s sample.Shape) string {
	if s.Crowd() {
		return w.Rate
	}
	return w.Primary
}

// Tail returns the thinnest tail of the load's latencies that is printed, as a share of the
// samples.
func (w Workload) Tail() float64 {
	const thousandth = 0.001
	if w.tail > 0 {
		return w.tail
	}
	return thousandth
}

// MoreSamples returns how a visit gets more samples, such as "a longer --window".
func (w Workload) MoreSamples() string {
	if w.moreSamples != "" {
		return w.moreSamples
	}
	return "a longer --window"
}
