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
	// Options that several loops read; zero for loads without them.
	bulk  sample.BulkOptions
	rr    sample.RROptions
	sizes sample.Messages
	write int
	fd    int
	udp   *flow
	buf   []byte

	index, of int
	twin      *thread // owner of the connection that it uses; nil: its own
	serves    bool
	attached  chan struct{} // closed when it has its own connection, or none
	put       putter

	sent, recvd, trips int64 // since the first byte
	hist               *hdrhistogram.Histogram
	times              map[string]*hdrhistogram.Histogram
	// in the window; the loop keeps them outside of what it times
	counts map[string]int64

	when   Schedule
	next   int64
	bounds int
	marks  []mark
	first  bool
	late   int64
	err    error

	// For threads with several connections: all of them (fd is the first), and the event loop.
	fds    []int
	stream *streamEnd

	noted [][]string // socket options before the load; see watchedOptions

	brief *brief

	active, bounded bool
	slices          *slicing

	// With a watcher, the counts are shown to it.
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

const windowBounds = 2

// passed makes a mark at the window's bounds, and returns true when the load is over.
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

// passUnseen takes the marks of bounds that passed while this end waited for the other: the window
// is then short, which the engine notices.
func (t *thread) passUnseen() {
	for now := clock.Now(); t.err == nil && t.bounds < windowBounds && now >= t.next; {
		was := t.next
		if t.passed(now); t.next == was {
			return
		}
	}
}

func (t *thread) mark(m mark) {
	if t.brief == nil { // the loop may replace its connection meanwhile
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

func (t *thread) failed(what string, e syscall.Errno) {
	t.err = fmt.Errorf("%s: %w", what, e)
}

// recvFull returns false at the end of the stream.
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

// finish shuts down sending but keeps the connection, whose counters are still to be read.
func (t *thread) finish() {
	if err := unix.Shutdown(t.fd, unix.SHUT_WR); err != nil && !errors.Is(err, unix.ENOTCONN) &&
		t.err == nil {
		t.err = fmt.Errorf("finish: %w", err)
	}
}

// Queued data may be sent again until it is acknowledged. A hop counts that but the load does not,
// so the ends wait.
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
