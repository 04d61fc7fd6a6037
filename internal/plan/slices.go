package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Slicing says how loads are cut into slices.
type Slicing struct {
	Slice  float64 // s; 0: nothing is sliced
	Asked  bool    // the user set Slice, so it is not made longer
	Window float64 // s for each cell at an epoch's end; 0: the usual
	CPUs   int     // of this machine
	// Visits is why loads are measured in visits on the backends unless Asked; "": they are not.
	Visits string
}

// The lengths of an epoch's parts, in seconds.
const (
	UsualEpoch   = 2.0 // the total time of the slices
	sliceWarmup  = 0.01
	windowBeside = 0.05 // for each cell at an epoch's end
)

// settleTime is the shortest warm-up of unpinned ends, in seconds. On an idle machine, the
// scheduler moves the threads of new processes to separate CPUs within some 100 ms.
const settleTime = 0.3

// A thread that has slept for tens of milliseconds wakes on the CPU of the thread that wakes it,
// even if another CPU is idle, and stays there. So in slices all unpinned ends would share one CPU.
const unpinnedVisits = "--pin none: the scheduler may move threads that rested between two slices"

// A relay with its own TCP or pipes accepts bytes into its queues for longer than a slice.
// slirp4netns reached 23 % of loopback's throughput in slices of 16 ms and 13 % in a window of 250
// ms, where iperf3 had 11 %.
const queuedVisits = "slirp4netns, pasta and gvisor-tap-vsock queue more than a slice carries"

// The tunes apply to the whole machine, and all modes share the slices.
const heldVisits = "--tune rmem_max, wmem_max, idle: they apply to the whole machine, and are set only during a visit"

// Cut returns the request's loads, sliced where that is possible. whole has, by the load's name, why
// a load is not sliced; it is empty if Slice is 0.
func (s Slicing) Cut(r Request) (loads []sample.Load, whole map[string]string) {
	whole = map[string]string{}
	unpinned := r.Pin == sample.PinNone && distant(r.On) == ""
	for _, l := range r.Loads {
		if unpinned && l.Warmup > 0 {
			l.Warmup = max(l.Warmup, settleTime)
		}
		if s.Slice > 0 {
			slice := s.length(l)
			if why := s.whyNot(r, l, slice); why != "" {
				whole[l.Name()] = why
			} else {
				l.Slice, l.Warmup, l.Window = slice, sliceWarmup, windowBeside
				if s.Window > 0 {
					l.Window = s.Window
				}
			}
		}
		loads = append(loads, l)
	}
	return loads, whole
}

// whyNot returns why a load of the request is not measured in slices of that many seconds, or "".
func (s Slicing) whyNot(r Request, l sample.Load, slice float64) string {
	why := uncut(l, slice, s.CPUs, r)
	switch {
	case why != "":
		return why
	case r.Pin == sample.PinNone && distant(r.On) == "":
		return unpinnedVisits
	case slices.ContainsFunc(r.Tunes, mode.Tunes.OfMachine):
		return heldVisits
	case !s.Asked && !workload.Of(l).Trips && queues(r):
		return queuedVisits
	case !s.Asked:
		return s.Visits
	}
	return ""
}

// distant returns the first backend that places client and server on different machines, or "".
func distant(on []string) string {
	for _, b := range sample.Backends() {
		if sample.Distant(b) && slices.Contains(on, b) {
			return b
		}
	}
	return ""
}

// queues reports whether connections of the request may cross a relay for which queuedVisits
// applies.
func queues(r Request) bool {
	relays := []mode.HopKind{mode.HopSlirp, mode.HopPasta, mode.HopGvisor}
	for _, n := range r.Modes {
		m, _ := mode.Find(n)
		for _, x := range m.Routes {
			from := len(r.From) == 0 || slices.Contains(r.From, x.From)
			to := slices.Contains(r.To, x.To) || len(r.To) == 0 && !x.To.Outside()
			if from && to && slices.ContainsFunc(x.Hops, func(h mode.HopKind) bool {
				return slices.Contains(relays, h)
			}) {
				return true
			}
		}
	}
	return false
}

// bulkSlice is the length of bulk's slices, in s. In 4 ms docker-proxy and NAT reach 8 to 10 % more
// of loopback's throughput than iperf3 shows in a second, because their queues are still filling.
// From 16 ms on they agree.
const bulkSlice = 0.016

// length returns the length of a load's slices, in seconds: Slice, or more for bulk, for threads
// that share CPUs, and for pages, because several pages must end in one slice even in a slow mode.
func (s Slicing) length(l sample.Load) float64 {
	const (
		pages = 5
		query = 100e-6 // s
		most  = 0.05
	)
	slice := max(s.Slice, min(most, pages*query*float64(workload.QueryOf(l).Queries)))
	switch {
	case s.Asked:
		return slice
	case l.Kind == workload.Bulk || l.Kind == workload.BulkReverse:
		slice = max(slice, bulkSlice)
	}
	return max(slice, turnsSlice(l, s.CPUs))
}

// uncut returns why a load cannot be measured in slices of slice seconds, or "" if it can.
func uncut(l sample.Load, slice float64, cpus int, r Request) string {
	known := workload.Of(l)
	if why := known.NotSliced(l); why != "" {
		return why
	}
	switch threads := known.Threads(l); {
	case threads > workload.ManyThreads:
		return fmt.Sprintf("the client or server has %d threads, which must share the CPUs", threads)
	case r.Wire.Rate > 0 || r.Wire.Delay > 0:
		return "--wire: a slow link still holds data of earlier slices"
	case distant(r.On) != "" && !known.Trips:
		return "--on " + distant(r.On) + ": the speed of the link between the nodes is unknown"
	}
	if least := max(leastSlice(l), turnsSlice(l, cpus)); slice < least {
		return fmt.Sprintf("a slice is too short for it: --slice %dms", int(math.Ceil(1000*least)))
	}
	return ""
}

// turnsSlice returns the shortest slice of bulk, in s, in which all threads of both ends run often
// enough on the CPUs. In slices of 4 ms, 4 streams on 2 CPUs lost half of their slices.
func turnsSlice(l sample.Load, cpus int) float64 {
	const turn = 3e-3
	w := workload.Of(l)
	n := 2 * w.Threads(l)
	if workload.BulkOf(l).Bidir { // each end's senders also wait for its receivers
		n *= 2
	}
	if w.Trips || n <= cpus {
		return 0
	}
	return turn * math.Ceil(float64(n)/float64(cpus))
}

// leastSlice returns the shortest slice, in seconds, that holds whole trips, pages or writes even
// in slow modes.
func leastSlice(l sample.Load) float64 {
	const (
		trip  = 80e-6
		rate  = 1e9 // bytes per second
		whole = 2
	)
	if !workload.Of(l).Trips {
		return whole * float64(workload.WriteOf(l)) / rate
	}
	m := workload.MessagesOf(l)
	return whole * float64(max(1, workload.QueryOf(l).Queries)) * (trip + float64(m.Request+m.Reply)/rate)
}

// TakeTurns returns the load with a longer warm-up and window if an end's threads must wait for a
// CPU in turn. turn is how long one more thread may make the others wait, in seconds.
func TakeTurns(l sample.Load, turn float64) sample.Load {
	n := workload.Of(l).Threads(l)
	if n <= workload.ManyThreads || workload.BulkOf(l).Bytes > 0 {
		return l
	}
	const windowTurns = 3
	turns := turn * float64(n)
	l.Warmup += turns
	l.Window = max(l.Window, windowTurns*turns)
	return l
}

// MostThreads returns the largest number of threads of an end of any load, at least 1.
func MostThreads(loads []sample.Load) int {
	most := 1
	for _, l := range loads {
		most = max(most, workload.Of(l).Threads(l))
	}
	return most
}

// traceEpoch is the total time of the slices in a traced epoch, in s. It is shorter than usual,
// because each round has one state and each state needs several rounds.
const traceEpoch = 1.0

// The total time of the slices in an epoch of one point, in s. A sweep has many epochs in a round,
// and several rounds must fit into the budget.
const (
	pointEpoch  = 1.
	leastEpoch  = 0.3
	sweepRounds = 6
)

// epoch returns the total time of the slices in an epoch, in seconds.
func (r Request) epoch() float64 {
	switch {
	case r.Trace != nil:
		return min(r.Epoch, traceEpoch)
	case r.Sweep != nil && r.Rounds == 0:
		return min(pointEpoch, max(leastEpoch, r.Budget/float64(sweepRounds*len(r.Loads))))
	}
	return r.Epoch
}
