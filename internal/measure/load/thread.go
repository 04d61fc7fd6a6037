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

// thread is one connection's state. Its loop owns it.
type thread struct {
	spec sample.Load
	// The options that loops of several loads read; zero for loads without them.
	bulk  sample.BulkOptions
	rr    sample.RROptions
	sizes sample.Messages
	write int // bytes in a write
	fd    int
	udp   *flow  // over UDP
	buf   []byte // the largest of what the loop sends and receives at once

	seat, of int           // its position among its end's threads, and their number
	twin     *thread       // on whose connection it sends; nil: it has its own
	serves   bool          // it belongs to the server's end
	attached chan struct{} // closed when it has its own connection, or none
	put      putter        // its method of sending; nil: copying

	sent, recvd, trips int64 // since the first byte
	hist               *hdrhistogram.Histogram
	times              map[string]*hdrhistogram.Histogram
	counts             map[string]int64 // in the window; kept by the loop, outside of what it times

	when   Schedule
	next   int64 // the next bound of the window
	bounds int   // number of the window's bounds that were passed
	marks  []mark
	first  bool // this thread also reads the process's clocks
	late   int64
	err    error

	// For a workload whose threads have several connections each: all of them (fd is the first),
	// and its event loop.
	fds    []int
	stream *streamEnd

	noted [][]string // the options of its sockets, before the load; see watchedOptions

	brief *brief // for a load whose connections end with each trip; else nil

	active bool     // it sends first
	slices *slicing // for a load with slices; else nil

	// For a crowd, or with many threads: the marks are the watcher's, and the counts are shown to
	// it.
	watched bool
	client  int          // the number that the client's end sent
	tid     atomic.Int32 // of its thread; 0: it has no connection yet
	shown   struct{ sent, recvd, trips atomic.Int64 }
}

// show publishes the counts for the watcher.
func (t *thread) show() {
	t.shown.sent.Store(t.sent)
	t.shown.recvd.Store(t.recvd)
	t.shown.trips.Store(t.trips)
}

// mark is a thread's state as it crosses a bound of the window.
type mark struct {
	at                 int64
	sent, recvd, trips int64
	threadCPU          int64
	processCPU         int64
	involuntary        int64
	tcp                unix.TCPInfo
}

const windowBounds = 2

// passed is called after every operation with the time; at a bound of the window it takes a mark.
// It returns true when the load is over.
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

// passUnseen takes the marks of bounds that passed while the other end did too little for this one
// to look at the clock: its window is then short, which the engine notices.
func (t *thread) passUnseen() {
	for now := clock.Now(); t.err == nil && t.bounds < windowBounds && now >= t.next; {
		was := t.next
		if t.passed(now); t.next == was {
			return
		}
	}
}

// mark takes a mark from the given counts and the thread's clock.
func (t *thread) mark(m mark) {
	if t.brief == nil { // otherwise its connection is its loop's, and a new one for each trip
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

// inWindow reports whether the thread is between the two bounds, or in the measured part of a
// slice.
func (t *thread) inWindow() bool {
	return t.bounds == 1 || t.slices != nil && t.slices.phase == untilTo
}

// failed records why the loop cannot continue.
func (t *thread) failed(what string, e syscall.Errno) {
	t.err = fmt.Errorf("%s: %w", what, e)
}

// recvFull receives exactly n bytes. It returns false at the end of the stream.
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

// sendFull sends exactly n bytes.
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

// finish tells the other end that nothing more comes and keeps the connection, whose counters are
// still to be read.
func (t *thread) finish() {
	if err := unix.Shutdown(t.fd, unix.SHUT_WR); err != nil && !errors.Is(err, unix.ENOTCONN) && t.err == nil {
		t.err = fmt.Errorf("finish: %w", err)
	}
}

// What is queued may be sent again until it is acknowledged. A hop counts that but the load does
// not, so the ends wait for it.
const (
	queuedMost = int64(2 * time.Second)
	queuedStep = int64(time.Millisecond)
)

// acknowledged waits until everything that was sent has been acknowledged, or the other end is
// gone.
func (t *thread) acknowledged() {
	for until := clock.Now() + queuedMost; clock.Now() < until; clock.SleepUntil(clock.Now() + queuedStep) {
		if queued, err := unix.IoctlGetInt(t.fd, unix.TIOCOUTQ); err != nil || queued == 0 { // SIOCOUTQ, by its other name
			return
		}
	}
}
