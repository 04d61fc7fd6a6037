package load

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An open loop: requests are due at a fixed rate, whatever became of those
// before. Each connection has one under way at a time; what falls due while a
// reply is outstanding is sent as soon as the reply is there, and its latency is
// counted from when it was due, as wrk2 counts it. A stall is thus in the
// latency of every request that it held up, not of one.

// What the client of an open loop counts and times in the window.
const (
	CountSends      = "sends"
	CountSendsHeld  = "sends_held" // were due while an earlier reply was outstanding
	CountSendsLate  = "sends_late" // the client's own fault: by lateSend or more
	TimeOwnLateness = "own_lateness"
)

// lateSend is by how much a send is late that is counted as late, in ns: more
// than it takes to wake a thread on an idle CPU of a virtual machine.
const lateSend = 200_000

// pace is when a connection's requests are due.
type pace struct {
	first float64 // ns on the clock
	each  float64 // ns
}

// paceOf spreads a rate evenly: the connections take turns.
func paceOf(s Spec, seat int, start int64) pace {
	each := float64(s.Streams) * 1e9 / s.Rate
	return pace{float64(start) + each*float64(seat)/float64(s.Streams), each}
}

func (p pace) due(n int64) int64 { return int64(p.first + float64(n)*p.each) }

func pacedClient(t *thread) {
	exactTimers()
	var (
		p    = paceOf(t.spec, t.seat, t.when.Start)
		late = t.times[TimeOwnLateness]
		now  = Now()
		// In the window; as variables, because a map costs time.
		sends, held, tardy int64
	)
	for n := int64(0); ; n++ {
		due := p.due(n)
		own, slept := int64(0), false
		for now < due {
			// The window's bounds are passed on time also if nothing is due.
			sleepUntil(min(due, t.next))
			slept = true
			if now = Now(); now >= t.next && t.passed(now) {
				t.paced(sends, held, tardy)
				return
			}
		}
		if slept {
			own = now - due
		}
		if !t.sendFull(t.spec.Request) || !t.recvFull(t.spec.Reply) {
			return // the server ends first only if it fails
		}
		now = Now()
		t.trips++
		if t.inWindow() {
			_ = t.hist.RecordValue(now - due) // over a minute: the window is long over
			sends++
			if slept {
				if late != nil {
					_ = late.RecordValue(own)
				}
			} else {
				held++
			}
			if own >= lateSend {
				tardy++
			}
		}
		if t.passed(now) {
			t.paced(sends, held, tardy)
			return
		}
	}
}

// paced ends the client's loop.
func (t *thread) paced(sends, held, tardy int64) {
	t.count(CountSends, sends)
	t.count(CountSendsHeld, held)
	t.count(CountSendsLate, tardy)
	t.finish()
}

// exactTimers takes the slack of 50 µs off the calling thread's sleeps. A kernel
// that refuses leaves the client later than need be, which is timed.
func exactTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// sleepUntil blocks the thread until the clock shows t, without Go's scheduler.
func sleepUntil(t int64) {
	ts := unix.NsecToTimespec(t)
	const absolute = 1 // TIMER_ABSTIME
	for {
		_, _, e := syscall.RawSyscall6(syscall.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, absolute, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		if e != syscall.EINTR {
			return
		}
	}
}

// glances is how often in a window a server looks at the clock if nothing comes.
const glances = 50

// pacedServer is rrServer for requests that may be far apart: it looks at the
// clock at each, and in between.
func pacedServer(t *thread) {
	glance := unix.NsecToTimeval(max((t.when.To-t.when.From)/glances, int64(time.Millisecond)))
	if err := unix.SetsockoptTimeval(t.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &glance); err != nil {
		t.err = fmt.Errorf("set SO_RCVTIMEO: %w", err)
		return
	}
	for t.recvGlancing(t.spec.Request) {
		if !t.sendFull(t.spec.Reply) {
			return
		}
		t.trips++
		t.passed(Now())
	}
	if t.err == nil {
		t.passed(Now())
	}
}

// recvGlancing is recvFull on a socket with a timeout.
func (t *thread) recvGlancing(n int) bool {
	for got := 0; got < n; {
		k, e := recv(t.fd, t.buf[got:n])
		switch {
		case e == syscall.EAGAIN:
			t.passed(Now())
			continue
		case e != 0:
			t.failed("receive", e)
			return false
		case k == 0:
			return false
		}
		got += k
		t.recvd += int64(k)
	}
	return true
}
