package bench

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type report struct {
	options
	environment sample.Environment
	date        time.Time
	versions    []string
	missing     []missing
	visits      map[cell]map[int]visit // by round
	notes       []string
	again       int // visits that were repeated
	disturbed   int // visits that were kept although other programs ran
}

func (r *report) add(c cell, round int, v visit) {
	if r.visits[c] == nil {
		r.visits[c] = map[int]visit{}
	}
	r.visits[c][round] = v
}

func (r *report) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

type metric struct {
	name   string
	unit   string
	scale  float64 // units in a base unit
	digits int
	of     func(visit) float64
	higher bool
	target bool // toll must be as good as the peer
}

var metrics = map[string][]metric{
	bulk: {
		{name: "throughput received", unit: "Gbit/s", scale: 1e-9, digits: 2, higher: true,
			target: true,
			of:     func(v visit) float64 { return v.bits }},
		{name: "CPU time per byte, both ends", unit: "ns/KiB", scale: 1e9 * 1024, digits: 1,
			target: true,
			of:     func(v visit) float64 { return v.seen.cpu() / v.seen.bytes }},
		{name: "CPU time per byte, client", unit: "ns/KiB", scale: 1e9 * 1024, digits: 1,
			of: func(v visit) float64 { return v.seen.client / v.seen.bytes }},
		{name: "CPU time per byte, server", unit: "ns/KiB", scale: 1e9 * 1024, digits: 1,
			of: func(v visit) float64 { return v.seen.server / v.seen.bytes }},
	},
	udp: {
		{name: fmt.Sprintf("throughput received of %d Mbit/s", bitrate/1_000_000), unit: "Mbit/s",
			scale: 1e-6, digits: 1, higher: true, target: true,
			of: func(v visit) float64 { return v.bits }},
		{name: "CPU time per datagram, both ends", unit: "µs", scale: 1e6, digits: 2, target: true,
			of: func(v visit) float64 { return v.seen.cpu() / v.seen.packets }},
	},
	crr: {
		{name: "connections", unit: "1/s", scale: 1, digits: 0, higher: true, target: true,
			of: func(v visit) float64 { return v.perSecond }},
		{name: "CPU time per connection, both ends", unit: "µs", scale: 1e6, digits: 2,
			target: true,
			of:     func(v visit) float64 { return v.seen.cpu() / v.seen.elapsed / v.perSecond }},
	},
	rr: {
		{name: "one-way latency", unit: "µs", scale: 1e6, digits: 2, target: true,
			of: func(v visit) float64 { return v.oneWay }},
		{name: "CPU time per round trip, both ends", unit: "µs", scale: 1e6, digits: 2,
			of: func(v visit) float64 { return v.seen.cpu() / v.seen.trips() }},
	},
}

func agreement(c cell, v visit) float64 {
	switch c.load {
	case bulk, udp:
		return v.bits / (v.seen.bytes * bitsPerByte / v.seen.elapsed)
	case crr:
		return math.NaN() // tools need different numbers of packets for a connection
	}
	return v.seen.elapsed / v.seen.trips() / (2 * v.oneWay)
}

func (r *report) values(c cell, of func(visit) float64) map[int]float64 {
	out := map[int]float64{}
	for round, v := range r.visits[c] {
		out[round] = of(v)
	}
	return out
}

func list(byRound map[int]float64) []float64 {
	out := make([]float64, 0, len(byRound))
	for _, x := range byRound {
		out = append(out, x)
	}
	return out
}

func (m metric) text(byRound map[int]float64) string {
	return fmt.Sprintf("%.*f %s", m.digits, stats.Median(list(byRound))*m.scale, m.unit)
}

// The interval of a ratio may reach this far to the wrong side of 1 if the target is to hold.
const precision = 0.02

func (r *report) markdown() string {
	var b strings.Builder
	r.head(&b)
	b.WriteString("| what | toll | peer | toll / peer | toll / toll again | target | holds |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, p := range pairs {
		for _, m := range metrics[p.own.load] {
			r.row(&b, p, m)
		}
	}
	r.absolute(&b)
	b.WriteString("\nEach tool's own figure against the counters of the loopback device:\n\n" +
		"| cell | own / counted |\n|---|---|\n")
	for _, p := range pairs {
		if p.own.load == crr {
			continue
		}
		for _, c := range []cell{p.own, p.peer} {
			own := stats.Summarize(list(r.values(c, func(v visit) float64 {
				return agreement(c, v)
			})))
			fmt.Fprintf(&b, "| %s | %s |\n", c, ratio(own))
		}
	}
	r.foot(&b)
	return b.String()
}

func (r *report) head(b *strings.Builder) {
	e := r.environment
	fmt.Fprintf(
		b,
		"%s; %s, %d CPUs; Linux %s; congestion control %s; %s; %d rounds, window %s, seed %d.\n\n",
		r.date.UTC().Format("2006-01-02 15:04 MST"), e.CPUModel, e.CPUs, e.Kernel, e.Congestion,
		strings.Join(r.versions, ", "), r.rounds, r.window, r.seed)
}

func ratio(s stats.Summary) string {
	if s.N == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%.3f ± %.3f", s.Median, s.HalfWidth())
}

func (r *report) row(b *strings.Builder, p pair, m metric) {
	own, again, other := r.values(p.own, m.of), r.values(p.again, m.of), r.values(p.peer, m.of)
	noise := stats.Summarize(stats.Ratios(own, again))
	compared := stats.Summarize(stats.Ratios(own, other))
	target, holds := "", ""
	if m.target && p.comparable() {
		target = "≤ 1"
		if m.higher {
			target = "≥ 1"
		}
		holds = held(compared, noise, m.higher)
	}
	peerText := p.peer.tool + " not measured"
	if len(other) > 0 {
		peerText = p.peer.tool + " " + m.text(other)
	}
	fmt.Fprintf(b, "| %s, %s: %s | %s | %s | %s | %s | %s | %s |\n", p.own.what(), p.own.where(),
		m.name,
		m.text(own), peerText, ratio(compared), ratio(noise), target, holds)
}

// held returns "yes" if the interval rules out that toll is worse by more than precision, "no" if
// toll is worse by more than its noise, and otherwise that it is unclear.
func held(compared, noise stats.Summary, higher bool) string {
	if compared.N == 0 {
		return "not measured"
	}
	verdict := stats.Judge(compared, stats.Floor(noise), precision, higher)
	switch {
	case verdict == stats.Worse:
		return "no"
	case compared.N < stats.MinValues:
		return "unclear: too few rounds"
	case higher && compared.Low >= 1-precision, !higher && compared.High <= 1+precision:
		return "yes"
	}
	return string(stats.Unclear)
}

const (
	maxRSS   = 25 << 20
	maxStart = 300 * time.Millisecond
)

func (r *report) absolute(b *strings.Builder) {
	var rss float64
	for _, byRound := range r.visits {
		for _, v := range byRound {
			rss = max(rss, v.rss)
		}
	}
	fmt.Fprintf(
		b, "| resident memory of a worker, largest of all | %.1f MiB | | | | < %d MiB | %s |\n",
		rss/(1<<20), maxRSS>>20, below(rss, rss, maxRSS))
	s := stats.Summarize(list(r.values(startCell, func(v visit) float64 { return v.started })))
	fmt.Fprintf(
		b, "| `toll compare`: start to first visit | %.0f ± %.0f ms | | | | < %d ms | %s |\n",
		s.Median*1e3, s.HalfWidth()*1e3, maxStart.Milliseconds(),
		below(s.Low, s.High, maxStart.Seconds()))
}

func below(low, high, limit float64) string {
	switch {
	case math.IsNaN(low), math.IsNaN(high), high == 0:
		return "not measured"
	case high < limit:
		return "yes"
	case low >= limit:
		return "no"
	}
	return string(stats.Unclear)
}

func (r *report) foot(b *strings.Builder) {
	notes := r.notes
	if r.again > 0 {
		notes = append(
			notes,
			fmt.Sprintf(
				"visits made again because other programs ran or the machine stood still: %d; "+
					"kept although other programs ran: %d", r.again, r.disturbed))
	}
	for _, m := range r.missing {
		notes = append(notes, m.text())
	}
	if len(notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range notes {
		fmt.Fprintf(b, "- %s\n", n)
	}
}
