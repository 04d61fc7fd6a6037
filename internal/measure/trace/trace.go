// Package trace turns a log of kernel events into the segments of round trips. It does no I/O.
//
// A trip is a list of steps. A segment is the time between two steps, so the segments sum to the
// trip exactly. The steps are found as follows:
//
//   - A trip's events are those between the client's clock readings. Numbers of bytes check it.
//   - From a write until data is ready, all steps are on one CPU, in order, and of one packet. Its
//     pointer identifies it or, after it was copied, its byte number. A packet changes CPU only
//     between devices (RPS), or where TCP finds the socket in use.
//   - When data is ready on a socket, the trip continues where a read of that socket returns, on
//     any CPU and thread. If the reader is a relay, the trip continues where the relay writes to
//     another socket.
//   - A relay may also hold a tap device (pasta, slirp4netns). It reads the packets that the device
//     sends, and writes those that the device receives.
//   - A copy that a switch in user space makes has the byte number of its original.
//
// What a process does after it has woken another one is not on the trip. The reply begins when the
// server has read the request.
package trace

import (
	"math"
	"slices"

	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Device identifies a network device.
type Device struct {
	NetNS uint32 // inode number
	Index uint32
}

// Cell describes the path and the processes of a cell to Follow.
type Cell struct {
	Client, Server int   // PIDs
	Relays         []int // PIDs, in the order of the path
	// Copiers are the PIDs of processes that take packets from one device and send them out of
	// another, such as the userspace datapath of Open vSwitch. Packets through them are followed by
	// byte numbers, so only over TCP.
	Copiers []int
	UDP     bool
	Devices map[Device]sample.Link // of the path
	// Hops lists the kinds of the path's hops as the catalogue has them, in order.
	Hops []string
}

// Slice has the trips of a measured slice. Trip i lasts from Bounds[i] to Bounds[i+1] on the
// client's clock (CLOCK_MONOTONIC, ns).
type Slice struct {
	Slot   int
	Bounds []int64
}

// Log has what was recorded: each CPU's events in order, the number of lost events, and the
// tracepoints that the kernel lacks.
type Log struct {
	CPUs    [][]kernel.Event
	Lost    int
	Missing []string
}

// Follow follows a cell's trips through the log and returns their segments. Trips that overlap an
// earlier one count as lost.
func Follow(l Log, c Cell, all []Slice) *sample.Trace {
	f := newFollower(c, l.Missing)
	s := newSums(&f.cell)
	cpus := inOrder(l.CPUs)
	last := int64(math.MinInt64)
	var events []kernel.Event
	for _, slice := range all {
		s.begin(slice.Slot)
		for i := 1; i < len(slice.Bounds); i++ {
			from, to := slice.Bounds[i-1], slice.Bounds[i]
			if from < last || to <= from {
				s.lose(lost{after: names[0], want: "a later " + names[0]})
				continue
			}
			last = to
			if events = take(events[:0], cpus, from, to); len(events) > maxEvents {
				s.lose(lost{after: names[0], want: "fewer events"})
				continue
			}
			slices.SortStableFunc(events, byTime)
			if broken := f.follow(events); broken != nil {
				s.lose(*broken)
				continue
			}
			s.add(f, from, to)
		}
	}
	out := s.trace()
	out.Lost, out.Missing = l.Lost, l.Missing
	return out
}

// inOrder returns the logs with each CPU's events in the order of time. An interrupt may have put
// its event before an earlier one.
func inOrder(logs [][]kernel.Event) [][]kernel.Event {
	out := slices.Clone(logs)
	for i, l := range out {
		if !slices.IsSortedFunc(l, byTime) {
			out[i] = slices.Clone(l)
			slices.SortStableFunc(out[i], byTime)
		}
	}
	return out
}

func byTime(a, b kernel.Event) int {
	switch {
	case a.TS < b.TS:
		return -1
	case a.TS > b.TS:
		return 1
	}
	return 0
}

// take appends the events between from and to (ns) to out. It removes them and earlier ones from
// cpus.
func take(out []kernel.Event, cpus [][]kernel.Event, from, to int64) []kernel.Event {
	at := func(e kernel.Event, ts int64) int { return byTime(e, kernel.Event{TS: ts}) }
	for i, l := range cpus {
		if len(l) == 0 || l[0].TS >= to {
			continue
		}
		first, _ := slices.BinarySearchFunc(l, from, at)
		n, _ := slices.BinarySearchFunc(l[first:], to, at)
		out = append(out, l[first:first+n]...)
		cpus[i] = l[first+n:]
	}
	return out
}
