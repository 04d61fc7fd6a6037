package load

import (
	"math"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// In an open loop, requests are due at a fixed rate. Each connection has one request in flight. A
// request that becomes due meanwhile is sent right after the reply, and its latency counts from
// when it was due, as in wrk2. The requests that are due in the window count. One that could not be
// sent by the load's end has waited until then.

// lateSend is the delay (ns) from which a send counts as late: more than it takes to wake a thread
// on an idle CPU of a virtual machine.
const lateSend = 200_000

type pace struct {
	first float64 // ns on the clock
	each  float64 // ns
}

// paceOf returns when the requests of one connection are due. The connections take turns, so that
// all together have the load's rate.
func paceOf(s sample.Load, index int, start int64) pace {
	each := float64(s.Streams) * 1e9 / workload.RROf(s).Rate
	return pace{float64(start) + each*float64(index)/float64(s.Streams), each}
}

func (p pace) due(n int64) int64 { return int64(p.first + float64(n)*p.each) }

// next returns the number of the first request that is due at t or later, at least 0.
func (p pace) next(t int64) int64 {
	return int64(max(0, math.Ceil((float64(t)-p.first)/p.each)))
}

func pacedClient(t *thread) {
	exactTimers()
	if !t.setTimeout() {
		return
	}
	var (
		p    = paceOf(t.spec, t.index, t.when.Start)
		late = t.times[workload.TimeOwnLateness]
		now  = clock.Now()
		// These are variables, because counting in a map costs time.
		sends, held, tardy int64
	)
	for n := int64(0); ; n++ {
		due := p.due(n)
		own, slept := int64(0), false
		for now < due {
			// The window's bounds are passed on time even if nothing is due.
			sleepUntil(min(due, t.next))
			slept = true
			if now = clock.Now(); now >= t.next && t.passed(now) {
				t.paced(sends, held, tardy)
				return
			}
		}
		if slept {
			own = now - due
		}
		counts := due >= t.when.From && due < t.when.To
		if !t.sendFull(t.sizes.Request) || !t.recvTimeout(t.sizes.Reply) {
			return
		}
		now = clock.Now()
		t.trips++
		if counts {
			record(t.hist, now-due)
			sends++
			if slept {
				if late != nil {
					record(late, own)
				}
			} else {
				held++
			}
			if own >= lateSend {
				tardy++
			}
		}
		if t.passed(now) {
			unsent := t.unsent(p, n+1, now)
			t.paced(sends+unsent, held+unsent, tardy)
			return
		}
	}
}

// unsent records the waits until now of requests from number n on that were due in the window. It
// returns their number.
func (t *thread) unsent(p pace, n, now int64) int64 {
	const most = 100_000 // calls: an overloaded hour leaves millions of requests
	first, end := max(n, p.next(t.when.From)), p.next(t.when.To)
	step := 1 + (end-first)/most
	for k := first; k < end; k += step {
		wait := min(now-p.due(k), t.hist.HighestTrackableValue())
		_ = t.hist.RecordValues(wait, min(step, end-k))
	}
	return max(0, end-first)
}

func (t *thread) paced(sends, held, tardy int64) {
	t.count(workload.CountSends, sends)
	t.count(workload.CountSendsHeld, held)
	t.count(workload.CountSendsLate, tardy)
	t.finish()
}

// exactTimers removes the slack of 50 µs from the calling thread's sleeps.
func exactTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

func sleepUntil(t int64) {
	ts := unix.NsecToTimespec(t)
	const absolute = 1 // TIMER_ABSTIME
	for {
		_, _, e := syscall.RawSyscall6(syscall.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, absolute,
			uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		if e != syscall.EINTR {
			return
		}
	}
}
