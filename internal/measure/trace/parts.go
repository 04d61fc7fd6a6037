package trace

import (
	"slices"

	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// gap identifies the time between two steps. Its name depends on all trips (see namer).
type gap struct {
	from, to  kernel.Kind // 0: the client's clock
	a, b      Device      // the devices of from and to
	direction direction
	hook      uint32 // 1 plus the hook's number; 0: no hook
	nat       bool   // the hook's NAT; hook has the rest of it
	relayed   bool   // at to, a relay begins to write
	copied    bool   // at to, a switch in user space wakes up or sends
}

// stretch is a gap of one trip.
type stretch struct {
	gap
	took   int64
	events int
}

// order lists the steps from one process to the next, and the part that each step ends. The part
// that a write ends depends on the process.
var order = []struct {
	kind kernel.Kind
	part sample.Part
}{
	{kernel.Send, ""},
	{kernel.Queue, sample.PartOut},
	{kernel.Xmit, sample.PartQdisc},
	{kernel.Rx, sample.PartDriver},
	{kernel.Receive, sample.PartHandover},
	{kernel.TCP, sample.PartIn},
	{kernel.Ready, sample.PartTCPIn},
	{kernel.Switch, sample.PartWake},
	{kernel.Copy, sample.PartCopy},
	{kernel.Read, sample.PartRead},
}

// placeOf returns a kind's position in order. The client's clock has the last position.
func placeOf(k kernel.Kind) int {
	if k == kernel.Waking { // on a kernel without Ready
		k = kernel.Ready
	}
	for i, o := range order {
		if o.kind == k {
			return i
		}
	}
	return len(order) - 1
}

// span returns the parts between two positions.
func span(from, to int) (out []sample.Part) {
	for i := from + 1; i <= to; i++ {
		out = append(out, order[i].part)
	}
	return out
}

// stretches divides the trip from its beginning to its end (ns) at its steps.
func (f *follower) stretches(from, to int64) (out []stretch) {
	n := len(f.steps)
	last := step{Event: kernel.Event{TS: from, CPU: f.steps[0].CPU}}
	end := step{Event: kernel.Event{TS: to, CPU: f.steps[n-1].CPU}, at: len(f.events),
		leg: f.steps[n-1].leg}
	next := 0
	for i, s := range f.steps {
		if !s.minor {
			out = f.between(out, last, s, f.steps[next:i])
			last, next = s, i+1
		}
	}
	return f.between(out, last, end, f.steps[next:])
}

// between appends the stretch between two steps, divided at netfilter's hooks.
func (f *follower) between(out []stretch, a, b step, minor []step) []stretch {
	g := gap{from: a.Kind, to: b.Kind, a: deviceOf(a.Event), b: deviceOf(b.Event),
		direction: f.legs[b.leg].direction, copied: b.copied}
	g.relayed = g.direction.from == relay && a.leg != b.leg
	for i := 0; i < len(minor); i++ {
		n := endOfHook(minor[i:])
		if n == 0 {
			continue
		}
		out = append(out, f.stretch(g, a, minor[i], 0))
		out = append(out, f.inHook(g, minor[i:i+n+1])...)
		i += n
		a = minor[i]
	}
	return append(out, f.stretch(g, a, b, len(minor)))
}

// endOfHook returns the index of the step that ends the hook which the first step begins, or 0.
func endOfHook(steps []step) int {
	if steps[0].Kind != kernel.HookIn {
		return 0
	}
	for i, s := range steps[1:] {
		switch {
		case s.Kind == kernel.HookOut && s.Dev == steps[0].Dev:
			return 1 + i
		case s.Kind == kernel.HookIn:
			return 0
		}
	}
	return 0
}

// inHook returns the stretches of the hook that the first and the last step enclose: its NAT, and
// what is before and after that.
func (f *follower) inHook(g gap, steps []step) []stretch {
	first, last := steps[0], steps[len(steps)-1]
	g.hook = 1 + first.Dev
	index := func(k kernel.Kind) int {
		return slices.IndexFunc(steps, func(s step) bool { return s.Kind == k })
	}
	in, out := index(kernel.NATIn), index(kernel.NATOut)
	if in < 0 || out < in {
		return []stretch{f.stretch(g, first, last, 0)}
	}
	nat := g
	nat.nat = true
	return []stretch{f.stretch(g, first, steps[in], 0), f.stretch(nat, steps[in], steps[out], 0),
		f.stretch(g, steps[out], last, 0)}
}

// stretch returns the gap with the number of events that delay the trip. In a gap that changes CPU,
// only its own steps count.
func (f *follower) stretch(g gap, a, b step, minor int) stretch {
	s := stretch{gap: g, took: b.TS - a.TS}
	if a.CPU != b.CPU {
		s.events = 1 + minor
		return s
	}
	for _, e := range f.events[a.at:b.at] {
		if e.CPU == a.CPU {
			s.events++
		}
	}
	return s
}

func deviceOf(e kernel.Event) Device {
	switch e.Kind {
	case kernel.Queue, kernel.Xmit, kernel.Rx, kernel.Receive:
		return Device{NetNS: e.NetNS, Index: e.Dev}
	}
	return Device{}
}
