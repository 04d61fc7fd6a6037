package load

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Prepare readies this process for a load of n threads: no garbage
// collection from now on, and a processor for each thread that blocks in a
// raw system call and two for the rest of the program. The process should
// have been started with GODEBUG=asyncpreemptoff=1, or the runtime sends its
// threads a signal every 10 ms.
func Prepare(n int) {
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(n + 2)
}

// thread is one connection's state. Its loop owns it.
type thread struct {
	spec sample.Load
	// The options that loops of several loads read; none is given of loads without them.
	bulk  workload.BulkOptions
	rr    workload.RROptions
	sizes workload.Messages
	write int // bytes a write
	fd    int
	udp   *flow  // over UDP
	buf   []byte // max of what the loop sends and receives at once

	seat, of int           // its place among its end's threads, of how many
	twin     *thread       // on whose connection it sends; nil: it has its own
	serves   bool          // it is of the server's end
	attached chan struct{} // closed when it has its own connection, or none
	put      putter        // its way to send; nil: by copying

	sent, recvd, trips int64 // since the first byte
	hist               *hdrhistogram.Histogram
	times              map[string]*hdrhistogram.Histogram
	counts             map[string]int64 // in the window; kept by the loop, outside of what it times

	when   Schedule
	next   int64 // the bound of the window that comes next
	bounds int   // of the window that were passed
	marks  []mark
	first  bool // this thread also reads the process's clocks
	late   int64
	err    error

	// Of a workload whose threads have several connections each: all of them (fd
	// is the first), and its event loop.
	fds    []int
	stream *streamEnd

	brief *brief // of a load whose connections end with each trip; else nil

	active bool     // it sends first
	slices *slicing // of a load with slices; else nil

	// Of a crowd, or of many threads: the marks are the watcher's, and the counts are shown to it.
	watched bool
	client  int          // the number that the client's end gave itself
	tid     atomic.Int32 // of its thread; 0: it has no connection yet
	shown   struct{ sent, recvd, trips atomic.Int64 }
}

// show lets the watcher see the counts.
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

// passed is called after every operation with the time; once a bound of the
// window has been reached it takes a mark. It is true when the load is over.
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

// mark takes a mark from the given counts and the thread's clock.
func (t *thread) mark(m mark) {
	if t.brief == nil { // else its connection is its loop's, and a new one for each trip
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

// inWindow is true between the two bounds, and in what is measured of a slice.
func (t *thread) inWindow() bool {
	return t.bounds == 1 || t.slices != nil && t.slices.phase == untilTo
}

// failed notes why the loop cannot go on.
func (t *thread) failed(what string, e syscall.Errno) {
	t.err = fmt.Errorf("%s: %w", what, e)
}

// recvFull receives exactly n bytes; false at the end of the stream.
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

// finish tells the other end that nothing more comes and keeps the
// connection, whose counters are still to be read.
func (t *thread) finish() {
	if err := unix.Shutdown(t.fd, unix.SHUT_WR); err != nil && !errors.Is(err, unix.ENOTCONN) && t.err == nil {
		t.err = fmt.Errorf("finish: %w", err)
	}
}

// Until what is queued has been acknowledged it may be sent again, which a hop counts
// but the load does not; that is waited for.
const (
	queuedMost = int64(2 * time.Second)
	queuedStep = int64(time.Millisecond)
)

// acknowledged waits until all that was sent has been acknowledged, or the other end is gone.
func (t *thread) acknowledged() {
	for until := clock.Now() + queuedMost; clock.Now() < until; clock.SleepUntil(clock.Now() + queuedStep) {
		if queued, err := unix.IoctlGetInt(t.fd, unix.TIOCOUTQ); err != nil || queued == 0 { // SIOCOUTQ, by its other name
			return
		}
	}
}

// crew is the threads of one end.
type crew struct {
	threads []*thread
	opened  chan error    // one for each thread
	start   chan Schedule // closed by Close if Run was never called
	done    chan struct{} // closed when all threads have ended
	once    sync.Once
	ran     bool
	crowd   bool // it is one of many ends
	begins  bool // it sends first; the other end waits for what comes
}

// newCrew starts the threads; each opens its connection at once and then
// waits for Run.
func newCrew(o Options, w job, loop func(*thread), open func(*thread) error) *crew {
	spec := withDefaults(o.Load)
	bulk, sizes, write := workload.BulkOf(spec), workload.MessagesOf(spec), workload.WriteOf(spec)
	c := &crew{
		crowd:  o.Crowd,
		opened: make(chan error, o.Threads()),
		start:  make(chan Schedule, o.Threads()),
		done:   make(chan struct{}),
	}
	var wg sync.WaitGroup
	for i := range o.Threads() {
		t := &thread{spec: spec, bulk: bulk, rr: workload.RROf(spec), sizes: sizes, write: write,
			fd: -1, seat: i, of: o.Threads(), attached: make(chan struct{}), first: i == 0, watched: o.watched(), marks: make([]mark, 0, windowBounds),
			buf: written(max(cmp.Or(write, workload.DefaultWrite), sizes.Request, sizes.Reply))}
		if bulk.Bidir && i >= spec.Streams {
			t.twin = c.threads[i-spec.Streams]
		}
		if w.Trips && o.NewHistogram != nil {
			t.hist = o.NewHistogram()
		}
		if o.NewHistogram != nil {
			for _, name := range w.Times(o.Load) {
				if t.times == nil {
					t.times = map[string]*hdrhistogram.Histogram{}
				}
				t.times[name] = o.NewHistogram()
			}
		}
		c.threads = append(c.threads, t)
		wg.Add(1)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread's CPU mask goes with it
			c.live(t, o.cpu(i), loop, open, wg.Done)
		}()
	}
	go func() { wg.Wait(); close(c.done) }()
	return c
}

// written is memory that was written once. Memory that never was is one page
// of zeros to the kernel, which stays in the cache: no program's data is like
// that, and sending it is faster by a fifth.
func written(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
}

func (o Options) cpu(i int) int {
	if len(o.CPUs) == 0 {
		return -1
	}
	return o.CPUs[i%len(o.CPUs)]
}

func (c *crew) live(t *thread, cpu int, loop func(*thread), open func(*thread) error, done func()) {
	defer done()
	err := pin(cpu)
	if err == nil {
		err = t.attach(open)
	}
	if err == nil {
		t.tid.Store(int32(unix.Gettid()))
	}
	c.opened <- err
	if err != nil {
		t.err = err
		return
	}
	when, ok := <-c.start
	if !ok {
		return
	}
	t.when, t.next, t.active = when, when.From, c.begins && t.sends()
	if c.begins {
		clock.SleepUntil(when.first())
		t.late = clock.Now() - when.first()
	}
	if len(when.Slices) > 0 {
		exactTimers()
		t.slice(when.Slices)
	}
	loop(t)
}

// pin binds the calling thread to one CPU; -1 leaves it alone.
func pin(cpu int) error {
	if cpu < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to CPU %d: %w", cpu, err)
	}
	return nil
}

// open waits until every thread has its connection.
func (c *crew) open() error {
	var errs []error
	for range c.threads {
		if err := <-c.opened; err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Run runs the load to its end and says what this end did. The connections
// stay until Close, so that counters kept by them can be read. It is called
// once.
func (c *crew) Run(when Schedule) (Stats, error) {
	c.ran = true
	for range c.threads {
		c.start <- when
	}
	watched := make(chan struct{})
	go func() { c.watch(when); close(watched) }()
	<-c.done
	<-watched
	return c.stats()
}

// Close ends the connections.
func (c *crew) Close() error {
	var errs []error
	c.once.Do(func() {
		if !c.ran {
			close(c.start)
		}
		for _, t := range c.threads {
			if t.fd >= 0 && c.ran && t.twin == nil {
				errs = append(errs, t.close())
			}
			if f, ok := t.put.(*filed); ok && c.ran {
				errs = append(errs, unix.Close(f.file))
			}
		}
	})
	return errors.Join(errs...)
}

// Close ends the connections and stops listening.
func (s *Server) Close() error {
	err := s.crew.Close()
	if s.closed.Swap(true) {
		return err
	}
	return errors.Join(err, unix.Close(s.listener))
}

func (c *crew) stats() (Stats, error) {
	var (
		s    Stats
		errs []error
	)
	n := c.mains()
	var err error
	if s.Slices, err = together(c.threads, len(c.threads[0].when.Slices)); err != nil {
		errs = append(errs, err)
	}
	for _, t := range c.threads {
		if t.err != nil {
			errs = append(errs, t.err)
			continue
		}
		s.TotalSent += t.sent
		s.TotalRecv += t.recvd
		if t.twin == nil {
			s.Connections += t.connections()
		}
		s.Late = max(s.Late, t.late)
		if len(t.marks) < windowBounds {
			errs = append(errs, errors.New("the load ended before the window did"))
			continue
		}
		s.add(t, t.marks[0], t.marks[1], n)
		if c.crowd {
			s.Flows = append(s.Flows, t.flow(t.marks[0], t.marks[1]))
		}
	}
	return s, errors.Join(errs...)
}

// add adds a thread's window, from a to b, to the sums over n main threads.
func (s *Stats) add(t *thread, a, b mark, n int64) {
	width := b.at - a.at
	s.Sent += b.sent - a.sent
	s.Received += b.recvd - a.recvd
	s.Trips += b.trips - a.trips
	if width > 0 {
		s.Busiest = max(s.Busiest, float64(b.threadCPU-a.threadCPU)/float64(width))
	}
	if t.first {
		s.CPU = max(s.CPU, b.processCPU-a.processCPU) // of a number of bytes, the last thread's is the longest
		s.Involuntary = b.involuntary - a.involuntary
	}
	s.addMany(t)
	s.addTCP(t, a, b, n)
	if t.hist != nil {
		if s.Latency == nil {
			s.Latency = t.hist
		} else {
			s.Latency.Merge(t.hist)
		}
	}
	for name, h := range t.times {
		if s.Times == nil {
			s.Times = map[string]*hdrhistogram.Histogram{}
		}
		if s.Times[name] == nil {
			s.Times[name] = h
		} else {
			s.Times[name].Merge(h)
		}
	}
	for name, c := range t.counts {
		if s.Counts == nil {
			s.Counts = map[string]int64{}
		}
		s.Counts[name] += c
	}
}
