package sample

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Tracing is how an epoch is traced. The plan's seed determines it for each epoch.
type Tracing string

// The states of epochs. Untraced epochs show how much a mode adds, the others where.
const (
	Untraced Tracing = ""
	Traced   Tracing = "traced"
	// TracedThrice means that each program is attached TraceCopies times. Half of the time that
	// this adds is the cost of tracing. Two copies would add more than that, because the kernel
	// calls the only program of a tracepoint directly.
	TracedThrice Tracing = "thrice"
	// TracedHooks means that programs around each netfilter hook are attached as well, which change
	// the path.
	TracedHooks Tracing = "hooks"
)

// Words returns the state for a sentence.
func (t Tracing) Words() string {
	switch t {
	case Untraced:
		return "untraced"
	case TracedThrice:
		return "traced thrice"
	case TracedHooks:
		return "traced by hook"
	}
	return string(t)
}

// TraceCopies is the number of copies of each program in TracedThrice.
const TraceCopies = 3

// TracePlan selects what is traced.
type TracePlan struct {
	Hooks bool `json:"hooks,omitempty"` // some epochs are TracedHooks
}

// Part is what happens in a segment of a trip.
type Part string

// The parts in the order of a trip. If the kernel lacks the tracepoint between two parts, they are
// measured as one, named "A + B".
const (
	PartCall   Part = "call"       // system call until the socket is locked
	PartOut    Part = "TCP/IP out" // until the first device
	PartQdisc  Part = "qdisc"
	PartDriver Part = "driver"
	// PartHandover is from a device's receiving side through the backlog into the softirq; with RPS
	// also to another CPU.
	PartHandover Part = "hand-over"
	PartBridge   Part = "bridge"
	PartForward  Part = "forward"        // routed from device to device, with netfilter
	PartTunnel   Part = "tunnel"         // encapsulation, decapsulation
	PartHook     Part = "hook "          // and its name: "hook FORWARD"
	PartNAT           = PartHook + "NAT" // in hooks, whose own parts are without it
	PartIn       Part = "IP in"
	PartTCPIn    Part = "TCP in" // or UDP
	PartWake     Part = "wake-up"
	PartCopy     Part = "copy"
	PartRead     Part = "read"    // until the call returns
	PartProgram  Part = "program" // the server's own time
	PartRelay    Part = "relay"   // from a relay's reading to its writing, both calls included
	PartReturn   Part = "return"  // to the client's clock
)

// The parts of a request over a route to a server that runs, between captured packets.
const (
	PartClient      Part = "client"         // the program, its system calls, TCP and wake-up
	PartTransfer    Part = "transfer"       // from the first byte of a request or reply to its last
	PartNetwork     Part = "network"        // from one process's device to another's; see LegVeth
	PartRelayed     Part = "relaying"       // from a relay's device to its device; Hop names the relay
	PartServer      Part = "server"         // from the request's last byte to the reply's first write
	PartServerTCP   Part = "server's TCP"   // until TCP sent the write
	PartServerQueue Part = "server's queue" // of the device

	// How a process spent its part, in which else is its own CPU time; in front of that.
	PartRelayedAsleep = PartRelayed + InPart + "asleep"
	PartRelayedWait   = PartRelayed + InPart + "waiting for a CPU"
	PartServerAsleep  = PartServer + InPart + "asleep"
	PartServerWait    = PartServer + InPart + "waiting for a CPU"
)

// Kinds of what is on the network between two processes, as parts of PartNetwork. Devices of others
// have the kernel's words.
const (
	LegLoopback = "lo"
	LegVeth     = "veth"
	LegBridge   = "bridge" // with iptables on the frames in it
	LegRouting  = "NAT and forwarding"
)

// InPart is between the name of a part and that of a part of it.
const InPart = ": "

// Hooks are the names of netfilter's hooks by number, in the order of a packet's path.
var Hooks = []string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// Trace is what a traced epoch showed of a cell's trips. Segments sum to the trip.
type Trace struct {
	State    Tracing `json:"state"`
	Trips    int     `json:"trips"`    // in measured slices
	Followed int     `json:"followed"` // of Trips, from the client's write to its read
	Events   float64 `json:"events"`   // recorded per followed trip, on average
	// Slots are the measured slices with followed trips: positions in the epoch's timetable.
	Slots []int `json:"slots"`
	// Totals are the medians of followed trips (s), by slice.
	Totals Times `json:"totals_ns,omitempty"`
	// MidMean (s) is the mean of the trips whose total is between the 40th and the 60th percentile.
	MidMean  float64   `json:"mid_mean_s"`
	Segments []Segment `json:"segments"` // in the order of a trip
	// Groups are the distinct lists of steps, most frequent first. Rare ones are left out.
	Groups []StepGroup `json:"groups,omitempty"`
	// Readers has, for each kind of wake-up of the process that read a byte, its share of all
	// wake-ups.
	Readers map[string]float64 `json:"readers,omitempty"`
	// Broken lists the steps after which other trips were lost, most frequent first.
	Broken []Break `json:"broken,omitempty"`
	// Lost is the number of events that the log had no room for.
	Lost int `json:"lost,omitempty"`
	// Missing names tracepoints that the kernel lacks.
	Missing []string `json:"missing,omitempty"`
	// Waits are replies of a route's server that waited for longer than 1 ms in its TCP, by cause.
	Waits []EvidenceWait `json:"waits,omitempty"`
	// Stamped means that the kernel noted when packets came for another program (SO_TIMESTAMP), once
	// for a bridge's port and the bridge behind it: the bridge is in the part of who received them.
	Stamped bool `json:"stamped,omitempty"`
	// Unkept is the number of followed trips of whose packets not all were kept: the network is divided
	// as in the others. If all are, it is not divided.
	Unkept int `json:"unkept,omitempty"`
	// Stopped are the processes of a route that a CPU limit stopped.
	Stopped []Stopped `json:"stopped,omitempty"`
	// Sleepers are the processes of a route that slept; a relay may be there twice, for the reply, too.
	Sleepers []Sleeper `json:"sleepers,omitempty"`
	// Queues are those of a route's processes that dropped connections.
	Queues []AcceptQueue `json:"accept_queues,omitempty"`
}

// Stopped is for how long, in s, a CPU limit stopped a process, and of what time.
type Stopped struct {
	Process string  `json:"process" printable:"text"`
	For     float64 `json:"for_s"`
	Of      float64 `json:"of_s"`
}

// AcceptQueue is the queue of the connections that wait until a process accepts them, which was full
// while they were watched.
type AcceptQueue struct {
	Process string `json:"process" printable:"text"` // "": unknown
	Port    uint16 `json:"port"`
	Apart   bool   `json:"apart,omitempty"` // in another network namespace than toll's
	Dropped int    `json:"dropped"`         // connections; one that tries again may count again
	Backlog int    `json:"backlog"`         // Backlog+1 connections may wait
	Most    int    `json:"somaxconn"`       // to which the kernel limits the backlog
}

func (q AcceptQueue) check() error {
	if min(q.Dropped, q.Backlog, q.Most) < 0 {
		return fmt.Errorf("impossible queue: %d dropped, for %d of %d", q.Dropped, q.Backlog, q.Most)
	}
	return nil
}

// Sleeper is a process that slept in most exchanges when the request or the reply came to it.
type Sleeper struct {
	Process string  `json:"process" printable:"text"`
	Took    float64 `json:"took_s"` // the median time until it was woken
}

// Frames are those of requests that go from port to port of a bridge, and that iptables sees.
type Frames struct {
	Bridge string `json:"bridge"`
	// Switch is what has iptables see them: bridge-nf-call-iptables=1, or the bridge's own option.
	Switch string `json:"switch" printable:"text"`
	Off    string `json:"off,omitempty"` // commands that end it; "": it is not in toll's namespace
	// Changed is the number of ports that some client would lose, gain or reach at another server
	// after Off, as a copy of the machine's network says; nil: that is not known.
	Changed *int `json:"changed,omitempty"`
}

// Steered says how a device's packets came to the softirq: at once, or by way of another CPU.
type Steered struct {
	Device  string  `json:"device"`
	Apart   bool    `json:"apart,omitempty"` // in another network namespace than toll's
	Packets int     `json:"packets"`
	Moved   int     `json:"moved"`            // to another CPU
	Wait    float64 `json:"wait_s"`           // of those that were moved, on average
	Stay    float64 `json:"stay_s,omitempty"` // of the others
}

func (s Steered) check() error {
	if s.Moved < 0 || s.Moved > s.Packets {
		return fmt.Errorf("%d of %d packets were moved", s.Moved, s.Packets)
	}
	return times(s.Wait, s.Stay)
}

// Times are times in s. In a file they are whole nanoseconds, to save space.
type Times []float64

const perSecond = 1e9

// MarshalJSON writes nanoseconds.
func (t Times) MarshalJSON() ([]byte, error) {
	out := make([]int64, len(t))
	for i, x := range t {
		out[i] = int64(math.Round(x * perSecond))
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads nanoseconds.
func (t *Times) UnmarshalJSON(b []byte) error {
	var in []float64
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	for i := range in {
		in[i] /= perSecond
	}
	*t = in
	return nil
}

// SegmentKey identifies a segment of a cell's trips.
type SegmentKey struct {
	Reply bool `json:"reply,omitempty"`
	// Hop is the kind of the device or process, as in Link.Kind, or of the relay; "": an end's own
	// work. Device is its name, and Where it is.
	Hop    string `json:"hop,omitempty"`
	Device string `json:"device,omitempty"`
	Where  string `json:"where,omitempty"`
	Part   Part   `json:"part"`
}

// Direction returns "request" or "reply".
func (k SegmentKey) Direction() string {
	if k.Reply {
		return "reply"
	}
	return "request"
}

// Segment is the time between two steps, or of several with equal keys in one trip.
type Segment struct {
	SegmentKey
	// MidMeans (s) are means, by slice, over the slice's trips whose total is between the 40th and
	// the 60th percentile. The means of a slice's segments add up to that of its trips, which
	// medians would not. The first segment with a part and a kind of hop has the sums over all such
	// segments in both directions; the others have nil. Segments of netfilter hooks keep their own.
	MidMeans Times `json:"mid_means_ns,omitempty"`
	// MidMean (s) is over the trips of Trace.MidMean. The segments' MidMeans add up to it.
	MidMean float64 `json:"mid_mean_s"`
	P99     float64 `json:"p99_s"` // over all followed trips
	// Slowest is its time in the slowest trip; 0: unknown, or none.
	Slowest float64 `json:"slowest_s,omitempty"`
	// Tail is its mean time in the trips from the 98.5th to the 99.5th percentile; 0: unknown, or
	// none.
	Tail   float64   `json:"tail_s,omitempty"`
	Share  float64   `json:"share"` // of followed trips that have the segment
	Events float64   `json:"events"`
	Steps  [2]string `json:"steps"` // names of the events that begin and end it
}

// StepGroup is one list of steps and its share of the followed trips.
type StepGroup struct {
	Share float64  `json:"share"`
	Steps []string `json:"steps"` // "net_dev_queue eth0 (container)"
	// Odd are the steps that no hop of the catalogue explains, as indexes into Steps.
	Odd []int `json:"odd,omitempty"`
}

// Break is where trips were lost.
type Break struct {
	Share float64 `json:"share"` // of all trips
	After string  `json:"after"` // the last step that was found
	Want  string  `json:"want"`  // what should have followed
}

const (
	maxSegments   = 1000
	maxGroups     = 100
	maxTraceSteps = 1000
)

func (t *Trace) check() error {
	if t == nil {
		return nil
	}
	n := len(t.Slots)
	if n > maxSlices || len(t.Totals) != n {
		return fmt.Errorf("%d traced slices with %d totals, at most %d are read", n,
			len(t.Totals), maxSlices)
	}
	if min(t.Followed, t.Lost, t.Unkept) < 0 || t.Followed > t.Trips || t.Unkept > t.Followed {
		return fmt.Errorf("impossible trace: %d of %d trips followed, %d events lost", t.Followed,
			t.Trips, t.Lost)
	}
	if len(t.Segments) > maxSegments || len(t.Groups) > maxGroups || len(t.Broken) > maxGroups ||
		max(len(t.Stopped), len(t.Queues), len(t.Sleepers)) > maxGroups {
		return fmt.Errorf("trace too large: %d segments, %d groups of steps, %d breaks",
			len(t.Segments), len(t.Groups), len(t.Broken))
	}
	if err := times(append(slices.Clone(t.Totals), t.MidMean, t.Events)...); err != nil {
		return err
	}
	for _, s := range t.Stopped {
		if err := times(s.For, s.Of); err != nil {
			return err
		}
	}
	for _, s := range t.Sleepers {
		if err := times(s.Took); err != nil {
			return err
		}
	}
	for _, q := range t.Queues {
		if err := q.check(); err != nil {
			return err
		}
	}
	for _, s := range t.Segments {
		if len(s.MidMeans) != n && len(s.MidMeans) != 0 {
			return fmt.Errorf("a segment with %d mid-means in %d slices", len(s.MidMeans), n)
		}
		if err := times(append(slices.Clone(s.MidMeans), s.MidMean, s.P99, s.Slowest, s.Tail,
			s.Share, s.Events)...); err != nil {
			return err
		}
	}
	for _, g := range t.Groups {
		if len(g.Steps) > maxTraceSteps {
			return fmt.Errorf("%d steps, at most %d are read", len(g.Steps), maxTraceSteps)
		}
		for _, i := range g.Odd {
			if i < 0 || i >= len(g.Steps) {
				return fmt.Errorf("impossible step %d of %d", i, len(g.Steps))
			}
		}
	}
	return nil
}
