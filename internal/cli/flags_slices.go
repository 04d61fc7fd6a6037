package cli

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type sliceFlags struct {
	same  float64       // 0: the command has no such flags
	slice time.Duration // 0: nothing is sliced
	asked bool          // the user set the slice, so it is not made longer
	// unpinned means that the scheduler places client and server.
	unpinned bool
	// queued means that a relay queues more than a slice of bulk.
	queued bool
	// held is the reason why nothing is sliced in this run, or "".
	held string

	// whole has, by the load's name, why a load is not sliced although --slice is not 0.
	whole map[string]string
}

func (f *sliceFlags) add(fl *pflag.FlagSet) {
	slice := timeFlag(&f.slice, 4*time.Millisecond, minSlice, maxSlice)
	slice.orZero = true
	add(fl,
		flagDef{name: "same", group: howLong, value: shareFlag(&f.same, 0.03),
			help: "a difference within this counts as none: the verdict is same"},
		flagDef{name: sliceFlag, group: howLong, value: slice,
			help: strings.Join(loadsWith(sliceFlag), ", ") +
				": how long a turn is; if not given, bulk takes 16ms, query 10ms, and many streams longer; 0: measure one mode after another for --window each, as with other loads"})
	fl.Lookup("window").Usage += "; 50ms for loads measured in turns"
}

const (
	minSlice = time.Millisecond
	maxSlice = time.Second
)

// The lengths of an epoch's parts, in seconds.
const (
	sliceWarmup  = 0.01
	windowBeside = 0.05 // for each cell at an epoch's end
)

// epochLength is the total time of the slices in an epoch, in seconds. Tests change it.
var epochLength = 2.0

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

// queues reports whether connections of the request may cross a relay for which queuedVisits
// applies.
func queues(r plan.Request) bool {
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

// The tunes apply to the whole machine, and all modes share the slices.
const heldVisits = "--tune rmem_max, wmem_max: they apply to the whole machine, and are set only during a visit"

func (f *sliceFlags) into(r *plan.Request, given func(flag string) bool) error {
	if f.same == 0 {
		return nil
	}
	r.Same = f.same
	if given("same") && !given("precision") {
		const within = 2. / 3 // a wider interval hardly ever lies within --same
		r.Precision = min(r.Precision, within*r.Same)
	}
	r.Epoch = epochLength
	sliced := func(l sample.Load) bool { return l.Slice > 0 }
	if given(sliceFlag) && f.slice > 0 && !slices.ContainsFunc(r.Loads, sliced) {
		l := r.Loads[0]
		return usage(fmt.Errorf("--slice %s: %s cannot be measured in slices: %s", f.slice, l.Kind,
			f.whole[l.Name()]), "leave --slice out")
	}
	return nil
}

// cut makes a load sliced, or records why that is impossible. window is the one that the user set,
// in seconds; 0: none.
func (f *sliceFlags) cut(l *sample.Load, window float64, w sample.Wire, on []string) {
	if f.unpinned && l.Warmup > 0 {
		l.Warmup = max(l.Warmup, settleTime)
	}
	if f.slice == 0 {
		return
	}
	slice := f.lengthOf(*l)
	if !f.asked {
		slice = max(slice, turnsSlice(*l, runtime.NumCPU()))
	}
	why := whole(*l, slice, w, on)
	if why == "" && f.unpinned {
		why = unpinnedVisits
	}
	if why == "" {
		why = f.held
	}
	if why == "" && f.queued && !f.asked && !workload.Of(*l).Trips {
		why = queuedVisits
	}
	if why == "" && !f.asked {
		why = visitsOn(on)
	}
	if why != "" {
		if f.whole == nil {
			f.whole = map[string]string{}
		}
		f.whole[l.Name()] = why
		return
	}
	l.Slice, l.Warmup, l.Window = slice, sliceWarmup, windowBeside
	if window > 0 {
		l.Window = window
	}
}

// bulkSlice is the length of bulk's slices, in s. In 4 ms docker-proxy and NAT reach 8 to 10 % more
// of loopback's throughput than iperf3 shows in a second, because their queues are still filling.
// From 16 ms on they agree.
const bulkSlice = 0.016

// lengthOf returns the length of a load's slices, in seconds: --slice, or more for bulk and for
// pages, because several pages must end in one slice even in a slow mode.
func (f *sliceFlags) lengthOf(l sample.Load) float64 {
	const (
		pages = 5
		query = 100e-6 // s
		most  = 0.05
	)
	if !f.asked && (l.Kind == workload.Bulk || l.Kind == workload.BulkReverse) {
		return max(f.slice.Seconds(), bulkSlice)
	}
	return max(f.slice.Seconds(), min(most, pages*query*float64(workload.QueryOf(l).Queries)))
}

// whole returns why a load cannot be measured in slices of slice seconds, or "" if it can.
func whole(l sample.Load, slice float64, w sample.Wire, on []string) string {
	known := workload.Of(l)
	if why := known.NotSliced(l); why != "" {
		return why
	}
	switch threads := known.Threads(l); {
	case threads > load.ManyThreads:
		return fmt.Sprintf("the client or server has %d threads, which must share the CPUs", threads)
	case w.Rate > 0 || w.Delay > 0:
		return "--wire: a slow link still holds data of earlier slices"
	case distantOf(on) != "" && !known.Trips:
		return "--on " + distantOf(on) + ": the speed of the link between the nodes is unknown"
	}
	if least := max(leastSlice(l), turnsSlice(l, runtime.NumCPU())); slice < least {
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
