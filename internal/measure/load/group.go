package load

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Prepare prepares this process for a load of n threads. It turns off garbage collection and raises
// GOMAXPROCS so that each thread may block in a raw system call, with two processors left for the
// rest of the program. If CAP_SYS_NICE allows it, the runtime's monitor thread sets fewer timers.
// Start the process with GODEBUG=asyncpreemptoff=1, or the runtime sends its threads a signal every
// 10 ms.
func Prepare(n int) {
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(n + 2)
	_ = quietMonitor()
}

type threadGroup struct {
	threads []*thread
	opened  chan error
	start   chan Schedule // closed by Close if Run was never called
	done    chan struct{} // closed when all threads have ended
	once    sync.Once
	ran     bool
	crowd   bool // one of many ends
	begins  bool // this end sends first
}

func newThreadGroup(o Options, w job, loop func(*thread), open func(*thread) error) *threadGroup {
	spec := withDefaults(o.Load)
	bulk, sizes, write := workload.BulkOf(spec), workload.MessagesOf(spec), workload.WriteOf(spec)
	c := &threadGroup{
		crowd:  o.Crowd,
		opened: make(chan error, o.Threads()),
		start:  make(chan Schedule, o.Threads()),
		done:   make(chan struct{}),
	}
	var wg sync.WaitGroup
	for i := range o.Threads() {
		t := &thread{spec: spec, bulk: bulk, rr: workload.RROf(spec), sizes: sizes, write: write,
			fd:       -1,
			index:    i,
			of:       o.Threads(),
			attached: make(chan struct{}),
			first:    i == 0,
			watched:  o.watched(),
			bounded:  o.Bounds,
			marks:    make([]mark, 0, windowBounds),
			buf: written(max(cmp.Or(write, workload.DefaultWrite), sizes.Request,
				sizes.Reply))}
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
			// It is never unlocked, so that the OS thread ends with the goroutine and no other
			// goroutine inherits its CPU mask.
			runtime.LockOSThread()
			c.live(t, o.cpu(i), loop, open, wg.Done)
		}()
	}
	go func() { wg.Wait(); close(c.done) }()
	return c
}

// written returns n random bytes, always the same. Sending pages of zeros would be a fifth faster.
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

func (c *threadGroup) live(t *thread, cpu int, loop func(*thread), open func(*thread) error,
	done func()) {
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
	t.passUnseen()
}

func pin(cpu int) error {
	if cpu < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(cpu)
	err := unix.SchedSetaffinity(0, &set)
	if errors.Is(err, unix.EINVAL) { // the CPU was chosen on the machine, and containers may have fewer
		return fmt.Errorf("pin to CPU %d: the cpuset of this process's control group lacks it; "+
			"--pin none needs none: %w", cpu, err)
	}
	if err != nil {
		return fmt.Errorf("pin to CPU %d: %w", cpu, err)
	}
	return nil
}

func (c *threadGroup) open() error {
	var errs []error
	for range c.threads {
		if err := <-c.opened; err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Run runs the load once and returns what this end did. The connections stay open until Close, so
// that their counters can be read.
func (c *threadGroup) Run(when Schedule) (Stats, error) {
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

// Close closes the connections. If Run was not called, it only ends the threads, and the process's
// exit closes the connections. Further calls do nothing.
func (c *threadGroup) Close() error {
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
