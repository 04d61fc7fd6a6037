package load

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type thread struct {
	spec sample.Load
	// The options that several loops read; zero for loads without them.
	bulk  sample.BulkOptions
	rr    sample.RROptions
	sizes sample.Messages
	write int
	fd    int
	udp   *flow
	buf   []byte

	index, of int
	twin      *thread // owner of the connection that this thread uses; nil: its own
	serves    bool
	attached  chan struct{} // closed when the thread has its connection, or failed
	put       putter

	sent, recvd, trips int64 // since the first byte
	hist               *hdrhistogram.Histogram
	times              map[string]*hdrhistogram.Histogram
	// counts has the workload's counts in the window. The loop updates them outside of what it
	// times.
	counts map[string]int64

	when   Schedule
	next   int64 // when passed has to act next, in ns
	bounds int   // number of the window's bounds passed
	marks  []mark
	first  bool // reads the process's clocks
	late   int64
	err    error

	// fds has all connections of a thread with several (fd is the first), and stream its event
	// loop.
	fds    []int
	stream *streamEnd

	brief *brief

	active, bounded bool
	slices          *slicing

	// watched means that a watcher reads the counts.
	watched bool
	client  int          // number that the client's end sent
	tid     atomic.Int32 // 0: not connected
	shown   struct{ sent, recvd, trips atomic.Int64 }
}

func (t *thread) show() {
	t.shown.sent.Store(t.sent)
	t.shown.recvd.Store(t.recvd)
	t.shown.trips.Store(t.trips)
}

type mark struct {
	at                 int64
	sent, recvd, trips int64
	threadCPU          int64
	processCPU         int64
	involuntary        int64
	tcp                unix.TCPInfo
}

// until returns the bytes that were moved from a to b.
func (a mark) until(b mark) float64 { return float64(b.sent - a.sent + b.recvd - a.recvd) }

const windowBounds = 2

// passed takes a mark at each of the window's bounds, and returns true once the load is over. now
// is in ns. In an epoch, passed sleeps between the slices of an active thread.
func (t *thread) passed(now int64) bool {
	if t.watched {
		t.show()
	}
	if now < t.next {
		if t.slices != nil {
			t.slices.saw(t, now)
		}
		return false
	}
	return t.cross(now)
}

func (t *thread) cross(now int64) bool {
	if t.slices != nil && !t.slices.over() {
		if t.crossSlices(now); !t.slices.over() || t.next > clock.Now() {
			return false
		}
		now = clock.Now()
	}
	if t.bounds < windowBounds {
		t.bounds++
		if !t.watched {
			t.mark(mark{at: now, sent: t.sent, recvd: t.recvd, trips: t.trips,
				threadCPU: clock.CPU(unix.CLOCK_THREAD_CPUTIME_ID)})
		}
	}
	t.next = t.when.To
	if t.bounds == windowBounds {
		t.next = max(t.when.To, t.when.End)
	}
	return t.bounds == windowBounds && now >= t.next
}

// passUnseen takes the marks of bounds that passed while this end waited for the other. The window
// is then short, which the engine detects.
func (t *thread) passUnseen() {
	for now := clock.Now(); t.err == nil && t.bounds < windowBounds && now >= t.next; {
		was := t.next
		if t.passed(now); t.next == was {
			return
		}
	}
}

func (t *thread) mark(m mark) {
	if t.brief == nil { // the loop may replace its connection while a watcher calls mark
		m.tcp = tcpInfo(t.fd)
	}
	if t.first {
		m.processCPU = clock.CPU(unix.CLOCK_PROCESS_CPUTIME_ID)
		var u unix.Rusage
		if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil {
			m.involuntary = u.Nivcsw
		}
	}
	t.marks = append(t.marks, m)
}

func (t *thread) inWindow() bool {
	return t.bounds == 1 || t.slices != nil && t.slices.phase == untilTo
}

// record counts a time in ns that is beyond the histogram's range as its longest.
func record(h *hdrhistogram.Histogram, ns int64) {
	_ = h.RecordValue(min(max(0, ns), h.HighestTrackableValue()))
}

func (t *thread) failed(what string, e syscall.Errno) {
	t.err = fmt.Errorf("%s: %w", what, e)
}

// recvFull receives n bytes. It returns false at the end of the stream.
func (t *thread) recvFull(n int) bool {
	for got := 0; got < n; {
		k, e := recv(t.fd, t.buf[got:n])
		if e != 0 {
			t.failed("receive", e)
			return false
		}
		if k == 0 {
			return false
		}
		got += k
		t.recvd += int64(k)
	}
	return true
}

func (t *thread) sendFull(n int) bool {
	for put := 0; put < n; {
		k, e := send(t.fd, t.buf[put:n])
		if e != 0 {
			t.failed("send", e)
			return false
		}
		put += k
		t.sent += int64(k)
	}
	return true
}

// finish shuts down sending. The connection stays open until its counters are read.
func (t *thread) finish() {
	if err := unix.Shutdown(t.fd, unix.SHUT_WR); err != nil && !errors.Is(err, unix.ENOTCONN) &&
		t.err == nil {
		t.err = fmt.Errorf("finish: %w", err)
	}
}

// The ends wait until queued data is acknowledged. Until then it may be sent again, which hops
// count and the load does not.
const (
	queuedMost = int64(2 * time.Second)
	queuedStep = int64(time.Millisecond)
)

func (t *thread) acknowledged() {
	for until := clock.Now() + queuedMost; clock.Now() < until; clock.SleepUntil(clock.Now() +
		queuedStep) {
		// SIOCOUTQ
		if queued, err := unix.IoctlGetInt(t.fd, unix.TIOCOUTQ); err != nil || queued == 0 {
			return
		}
	}
}
