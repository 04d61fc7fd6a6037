package trace

import (
	"slices"
	"strings"

	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
)

// The limits of a trip.
const (
	maxEvents = 1 << 16
	maxSteps  = 500
	maxLegs   = 16
)

// follows lists the kinds that may come after a packet's step. Only netkit and hardware have no
// netif_rx.
var follows = map[kernel.Kind][]kernel.Kind{
	kernel.Send:    {kernel.Queue},
	kernel.Queue:   {kernel.Xmit},
	kernel.Xmit:    {kernel.Rx, kernel.Queue, kernel.Receive},
	kernel.Rx:      {kernel.Receive},
	kernel.Receive: {kernel.TCP, kernel.Queue, kernel.Receive, kernel.Rx},
	kernel.TCP:     {kernel.Ready},
}

// step is an event of a trip.
type step struct {
	kernel.Event
	at  int // position among the trip's events
	leg int
	// minor means that the step splits no part and only gives details about one.
	minor bool
	// copied means that a switch in user space has handled the packet since the step before.
	copied bool
}

type role int

const (
	client role = iota
	relay
	server
)

// leg is the part of a trip from one process to the next.
type leg struct {
	direction
	reader string // how the reader was woken
	flow   flow
	number uint32 // its first byte's number
}

type direction struct {
	from, to role
	reply    bool
}

// flow is one direction of a process's connection.
type flow struct {
	process uint32
	reply   bool
}

type follower struct {
	cell    Cell
	lacks   map[kernel.Kind]bool
	next    map[kernel.Kind][]kernel.Kind // follows, for the kinds that the kernel has
	roles   map[uint32]role
	copiers map[uint32]bool
	threads map[uint32]bool // threads of relays seen so far
	numbers map[flow]uint32

	// The fields that follow are about one trip.
	events []kernel.Event
	steps  []step
	legs   []leg
	ptr    uint64 // of the followed packet; 0: its first step is not known yet
	seq    uint32 // its byte number; 0: unknown
}

func newFollower(c Cell, missing []string) *follower {
	f := &follower{cell: c, lacks: map[kernel.Kind]bool{}, next: map[kernel.Kind][]kernel.Kind{},
		roles: map[uint32]role{}, copiers: map[uint32]bool{}, threads: map[uint32]bool{}, numbers: map[flow]uint32{}}
	for kind, name := range names {
		f.lacks[kind] = slices.Contains(missing, name)
	}
	if c.UDP {
		f.lacks[kernel.Send], f.lacks[kernel.TCP] = true, true
	}
	for kind := range follows {
		f.next[kind] = f.after(kind)
	}
	for _, p := range c.Relays {
		f.roles[uint32(p)] = relay
	}
	for _, p := range c.Copiers {
		f.copiers[uint32(p)] = true
	}
	f.roles[uint32(c.Client)], f.roles[uint32(c.Server)] = client, server
	return f
}

// after returns the kinds that may come after k. What follows a kind that the kernel lacks replaces
// it.
func (f *follower) after(k kernel.Kind) (out []kernel.Kind) {
	for _, n := range follows[k] {
		if f.lacks[n] && len(follows[n]) > 0 {
			out = append(out, f.after(n)...)
		} else {
			out = append(out, n)
		}
	}
	return out
}

// lost has the step after which a trip could not be followed, and the step that was expected.
type lost struct{ after, want string }

func (f *follower) lost(want ...string) *lost {
	return &lost{after: f.cell.describe(f.last().Event), want: strings.Join(want, " or ")}
}

func (f *follower) last() step {
	if len(f.steps) == 0 {
		return step{at: -1}
	}
	return f.steps[len(f.steps)-1]
}

func (f *follower) add(at int) {
	f.steps = append(f.steps, step{Event: f.events[at], at: at, leg: len(f.legs) - 1})
}

// follow finds the steps of the trip with these events. It returns where the trip was lost, or nil.
func (f *follower) follow(events []kernel.Event) *lost {
	f.events, f.steps, f.legs = events, f.steps[:0], f.legs[:0]
	for _, e := range events {
		if f.is(e, relay) {
			f.threads[e.TID] = true
		}
	}
	from, at := client, -1
	for range maxLegs {
		reply := from == server || len(f.legs) > 0 && f.legs[len(f.legs)-1].reply
		f.legs = append(f.legs, leg{direction: direction{from: from, reply: reply}})
		if at < 0 {
			if at = f.write(f.last().at+1, from); at < 0 {
				return f.lost(f.writes())
			}
		}
		if broken := f.sent(at); broken != nil {
			return broken
		}
		if broken := f.carry(); broken != nil {
			return broken
		}
		next, broken := f.read()
		switch {
		case broken != nil:
			return broken
		case len(f.steps) > maxSteps:
			return f.lost("fewer steps")
		case f.legs[len(f.legs)-1].to == client:
			for _, l := range f.legs {
				f.numbers[l.flow] = l.number
			}
			return nil
		}
		from, at = f.legs[len(f.legs)-1].to, next
	}
	return f.lost("fewer relays")
}

func (f *follower) writes() string {
	if f.lacks[kernel.Send] {
		return names[kernel.Queue]
	}
	return names[kernel.Send]
}

// write returns the position where a process with this role next begins to write, or -1.
func (f *follower) write(from int, by role) int {
	for i := from; i < len(f.events); i++ {
		if f.is(f.events[i], by) && f.isWrite(i) {
			return i
		}
	}
	return -1
}

// isWrite reports whether a write begins with the event at a position.
func (f *follower) isWrite(at int) bool {
	e := f.events[at]
	switch {
	case e.Kind == kernel.Receive:
		return e.Len > 0 && f.is(e, relay) && f.ofTap(e)
	case !f.lacks[kernel.Send]:
		return e.Kind == kernel.Send
	}
	return e.Kind == kernel.Queue && e.Len > 0 && !f.isForwarded(at)
}

// ofTap reports whether a packet is at a tap device, which a process holds.
func (f *follower) ofTap(e kernel.Event) bool { return f.cell.is(deviceOf(e), "tuntap") }

// copies reports whether a switch in user space sends a packet. It may send into its own tap
// device.
func (f *follower) copies(e kernel.Event) bool {
	return f.copiers[e.PID] &&
		(e.Kind == kernel.Queue || e.Kind == kernel.Receive && f.ofTap(e))
}

// near is the most events, on all CPUs, in which isForwarded looks for a packet's arrival.
const near = 64

// isForwarded reports whether a packet in a device's queue came from another device. The event then
// has the PID of the process that was interrupted, which did not write the packet.
func (f *follower) isForwarded(at int) bool {
	e := f.events[at]
	for i := at - 1; i >= max(0, at-near); i-- {
		x := f.events[i]
		if x.CPU != e.CPU {
			continue
		}
		switch {
		case x.Kind == kernel.Receive, x.Kind == kernel.Xmit:
			return x.Ptr == e.Ptr
		case x.Kind != kernel.Route && !x.Kind.Hook():
			return false
		}
	}
	return false
}

func (f *follower) is(e kernel.Event, r role) bool {
	is, ok := f.roles[e.PID]
	return ok && is == r
}

// sent adds the beginning of a write and checks its number of bytes.
func (f *follower) sent(at int) *lost {
	f.add(at)
	e := f.events[at]
	f.ptr, f.seq = 0, e.Seq
	if e.Kind != kernel.Send {
		f.ptr = e.Ptr
	}
	if f.cell.UDP {
		return nil
	}
	l := &f.legs[len(f.legs)-1]
	l.number = e.Seq
	flow := flow{e.PID, l.reply}
	if before, known := f.numbers[flow]; known && int32(e.Seq-before) <= 0 {
		f.numbers[flow] = e.Seq // later trips are compared with it
		return f.lost("a later byte")
	}
	l.flow = flow
	return nil
}

// carry adds a packet's steps until a socket or a relay's tap device is ready.
func (f *follower) carry() *lost {
carry:
	for i := f.last().at + 1; i < len(f.events); i++ {
		e := f.events[i]
		if f.isReady(i) {
			return nil
		}
		last := f.last()
		ours, copied := f.carries(e)
		switch {
		case !ours && last.Kind != kernel.Send && f.writesHere(i):
			break carry
		case !ours:
			continue
		}
		if !slices.Contains(f.next[last.Kind], e.Kind) {
			if copied {
				continue
			}
			break
		}
		if e.Kind == kernel.Ready {
			f.add(i)
			return nil
		}
		f.around(last, i)
		byCopier := copied && f.copiers[e.PID]
		if byCopier {
			f.wakes(last, i)
		}
		f.add(i)
		f.steps[len(f.steps)-1].copied = byCopier
		f.ptr = e.Ptr
		if e.Kind == kernel.Xmit && len(f.cell.Relays) > 0 && f.ofTap(e) {
			return nil
		}
		if len(f.steps) > maxSteps {
			return f.lost("fewer steps")
		}
	}
	var want []string
	for _, k := range f.next[f.last().Kind] {
		if k != kernel.Receive || f.last().Kind != kernel.Receive {
			want = append(want, names[k])
		}
	}
	return f.lost(want...)
}

// writesHere reports whether a process writes where the packet should be.
func (f *follower) writesHere(at int) bool {
	e := f.events[at]
	_, known := f.roles[e.PID]
	return known && e.CPU == f.last().CPU && e.Ptr != f.ptr && f.isWrite(at)
}

// isReady reports whether, in a kernel without the tracepoint of Ready, an event shows that a
// socket is ready.
func (f *follower) isReady(at int) bool {
	e, last := f.events[at], f.last()
	if !f.lacks[kernel.Ready] || !slices.Contains(f.next[last.Kind], kernel.Ready) {
		return false
	}
	_, known := f.roles[e.PID]
	return e.Kind == kernel.Waking && e.CPU == last.CPU || e.Kind == kernel.Copy && known ||
		f.writesHere(at)
}

// carries reports whether an event belongs to the followed packet. It ignores the order of kinds.
// copied means that only its number shows that.
func (f *follower) carries(e kernel.Event) (ours, copied bool) {
	last := f.last()
	here := e.CPU == last.CPU
	switch e.Kind {
	case kernel.Ready:
		return here && slices.Contains(f.next[last.Kind], kernel.Ready) && f.reaches(e, last), false
	case kernel.Queue, kernel.Xmit, kernel.Rx, kernel.Receive, kernel.TCP:
	default:
		return false, false
	}
	known := e.Seq != 0 && f.seq != 0
	if e.Len <= 0 || known && e.Seq != f.seq {
		return false, false
	}
	switch {
	case f.ptr == 0: // the write's first packet
		return known || here && e.PID == last.PID, false
	case e.Ptr != f.ptr && f.copiers[e.PID]:
		return known && f.copies(e), true
	case e.Ptr != f.ptr:
		return here && known, true
	case here:
		return true, false
	case e.Kind == kernel.Receive:
		return last.Kind == kernel.Rx || last.Kind == kernel.Receive, false
	case e.Kind == kernel.TCP:
		return last.Kind == kernel.Receive, false
	}
	return false, false
}

// reaches reports whether a ready socket can be the destination of a packet after its last step.
func (f *follower) reaches(e kernel.Event, last step) bool {
	if last.Kind != kernel.TCP { // the last device's namespace may be another one
		return true
	}
	known := e.Seq != 0 && f.seq != 0
	return e.NetNS == last.NetNS && e.Source == last.Dest && e.Dest == last.Source &&
		(!known || int32(e.Seq-f.seq) > 0)
}

// around adds the minor steps between the last step and the next one of a packet.
func (f *follower) around(last step, next int) {
	to := f.events[next]
	softirq, routed, clean := -1, false, true
	for i := last.at + 1; i < next; i++ {
		e := f.events[i]
		switch {
		case e.Kind == kernel.Softirq && to.Kind == kernel.Receive && e.CPU == to.CPU:
			softirq = i
			continue
		case e.Kind.Hook() && e.Ptr == to.Ptr:
			f.minor(i)
			continue
		case e.CPU != last.CPU:
			continue
		case e.Kind == kernel.Route && clean:
			if !routed {
				f.minor(i)
			}
			routed = true
			continue
		}
		clean = false // later lookups may be for another packet
	}
	if softirq >= 0 {
		f.minor(softirq)
	}
}

// wakes adds the step at which a thread that copied a packet got its CPU, if it slept.
func (f *follower) wakes(last step, copied int) {
	e := f.events[copied]
	for i := copied - 1; i > last.at; i-- {
		if x := f.events[i]; x.Kind == kernel.Switch && x.CPU == e.CPU && x.Dev == e.TID {
			f.add(i)
			f.steps[len(f.steps)-1].copied = true
			return
		}
	}
}

func (f *follower) minor(at int) {
	f.add(at)
	f.steps[len(f.steps)-1].minor = true
}
