package judgetest

import (
	"math/rand/v2"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Trip is a cell's round trip with known parts.
type Trip struct {
	// Rest is the time, in µs, of an untraced trip that the segments do not explain.
	Rest     float64
	Segments []Piece
}

// Piece is a segment of a trip, without the cost of tracing. The names of its steps derive from its
// key.
type Piece struct {
	sample.SegmentKey
	Micros, Events float64
}

// EventCost is the time that tracing an event costs, in s.
const EventCost = 0.13e-6

// The noise of a segment from epoch to epoch, of a wake-up from epoch to epoch, and of both from
// slice to slice, in µs; the number of slices of a cell in an epoch.
const (
	epochNoise = 0.02
	wakeNoise  = 0.3
	sliceNoise = 0.1
	slicesEach = 30
)

// Trace makes the run a trace and adds the given number of blocks. Each has one epoch for each
// state, in random order, with a slice of each cell in turn. Without states, these are untraced,
// traced and traced thrice.
func (r *Run) Trace(seed uint64, blocks int, trips []Trip, states ...sample.Tracing) *Run {
	r.T.Helper()
	p := &r.File.Header.Plan
	p.Study, p.Same, p.Epoch, p.Trace = sample.StudyTrace, 0.03, 1, &sample.TracePlan{}
	for k := range p.Loads {
		p.Loads[k].Slice = 0.004
	}
	if len(states) == 0 {
		states = []sample.Tracing{sample.Untraced, sample.Traced, sample.TracedThrice}
	}
	rng := rand.New(rand.NewPCG(seed, 7))
	for range blocks {
		for _, k := range rng.Perm(len(states)) {
			p.Trace.Hooks = p.Trace.Hooks || states[k] == sample.TracedHooks
			for c, t := range trips {
				r.traced(rng, c, t, states[k])
			}
			r.File.End.Rounds++
		}
	}
	return r
}

func (r *Run) traced(rng *rand.Rand, cell int, t Trip, state sample.Tracing) {
	r.T.Helper()
	out := &sample.Trace{State: state, Trips: 50 * slicesEach, Followed: 50 * slicesEach,
		Totals:  make([]float64, slicesEach),
		Readers: map[string]float64{"slept, other CPU idle": 0.85, "awake": 0.15}}
	times := map[sample.Tracing]float64{sample.Traced: 1, sample.TracedThrice: sample.TraceCopies,
		sample.TracedHooks: 1}[state]
	const micro = 1e-6
	for k := range slicesEach {
		out.Slots = append(out.Slots, k*len(r.File.Header.Plan.Cells)+cell)
	}
	var steps []string
	for _, x := range t.in(state) {
		noise := epochNoise
		if x.Part == sample.PartWake {
			noise = wakeNoise
		}
		mid := micro*(x.Micros+noise*rng.NormFloat64()) + times*EventCost*x.Events
		s := sample.Segment{SegmentKey: x.SegmentKey, MidMean: max(0, mid), P99: 3 * max(0, mid),
			Share: 1, Events: x.Events,
			Steps: [2]string{"before_" + x.name(), "after_" + x.name()}}
		for k := range slicesEach {
			m := max(0, mid+micro*sliceNoise*rng.NormFloat64())
			s.MidMeans = append(s.MidMeans, m)
			out.Totals[k] += m
		}
		out.MidMean += s.MidMean
		out.Events += x.Events
		out.Segments = append(out.Segments, s)
		steps = append(steps, s.Steps[1])
	}
	out.Groups = []sample.StepGroup{{Share: 1, Steps: steps}}
	r.Visit(r.File.End.Rounds, cell, out.MidMean/micro+t.Rest, func(v *sample.Visit) {
		v.Slices = &sample.Slices{Slots: out.Slots}
		for _, x := range out.Totals {
			x += micro * t.Rest
			v.Slices.Medians = append(v.Slices.Medians, x)
			v.Slices.Rates = append(v.Slices.Rates, 1/x)
		}
		if state != sample.Untraced {
			v.Trace = out
		}
	})
}

func (x Piece) name() string {
	way := "request"
	if x.Reply {
		way = "reply"
	}
	return string(x.Part) + " " + x.Device + " " + way
}

// in returns the segments that an epoch in the given state shows. Unless it traces hooks, their
// time is in the segment before.
func (t Trip) in(state sample.Tracing) (out []Piece) {
	for _, x := range t.Segments {
		if strings.HasPrefix(string(x.Part), string(sample.PartHook)) &&
			state != sample.TracedHooks && len(out) > 0 {
			out[len(out)-1].Micros += x.Micros
			continue
		}
		out = append(out, x)
	}
	return out
}

// HostTrip returns a round trip over the loopback device.
func HostTrip() Trip { return Trip{Segments: roundTrip(loHop)} }

// NATTrip returns BridgeTrip's round trip with 0.8 µs of NAT in it, half of that in each direction.
func NATTrip() (out Trip) {
	for _, x := range BridgeTrip().Segments {
		out.Segments = append(out.Segments, x)
		if x.Part == sample.PartHook+"FORWARD" {
			x.Part, x.Micros = sample.PartNAT, 0.4
			out.Segments = append(out.Segments, x)
		}
	}
	return out
}

// BridgeTrip returns a round trip over a bridge. In µs, relative to HostTrip, it adds -1.4 in TCP
// and IP out, 0.5 in devices, 4 in the bridge, half of that in the hook FORWARD, and 0.5 that no
// part explains.
func BridgeTrip() Trip { return Trip{Rest: 0.5, Segments: roundTrip(vethHop)} }

var (
	loHop   = sample.SegmentKey{Hop: "loopback", Device: "lo", Where: "machine A"}
	vethHop = sample.SegmentKey{Hop: "veth", Device: "eth0", Where: "container"}
	brHop   = sample.SegmentKey{Hop: "bridge", Device: "br-toll", Where: "machine A"}
)

func roundTrip(device sample.SegmentKey) (out []Piece) {
	end, bridged := sample.SegmentKey{}, device == vethHop
	ip, each := 2.0, 0.2
	if bridged {
		ip, each = 1.3, 0.325
	}
	for _, reply := range []bool{false, true} {
		add := func(k sample.SegmentKey, p sample.Part, micros, events float64) {
			k.Part, k.Reply = p, reply
			out = append(out, Piece{k, micros, events})
		}
		add(end, sample.PartCall, 0.5, 2)
		add(end, sample.PartOut, ip, 2)
		add(device, sample.PartQdisc, each, 1)
		add(device, sample.PartDriver, each, 1)
		add(device, sample.PartHandover, 1, 2)
		if bridged {
			add(brHop, sample.PartBridge, 1, 3)
			add(brHop, sample.PartHook+"FORWARD", 1, 1)
		}
		add(end, sample.PartIn, 0.7, 1)
		add(end, sample.PartTCPIn, 1, 1)
		add(end, sample.PartWake, 16, 3)
		add(end, sample.PartCopy, 0.4, 1)
		add(end, sample.PartRead, 0.2, 1)
	}
	return out
}
