package truth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

// bystanderLimit is in s for each event that would be recorded, were it not another's.
const bystanderLimit = 0.1e-6

const (
	burst      = 2000 // trips
	logged     = 200  // trips
	foreign    = 1    // a port that nobody uses here
	forAnHour  = int64(time.Hour)
	manyEvents = 1 << 18
	// copies of each program stand out from the noise. A further one costs a tenth more than the
	// first, so that this does not flatter.
	copies = 4
)

// bystanders times another connection over the loopback device while programs are attached for
// nobody, against the same without programs, in turns. Both of its ends are one thread, so that
// nothing sleeps.
func (t *trial) bystanders(ctx context.Context) (_ []table, err error) {
	tracer, err := kernel.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tracer.Close()) }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpus, err := machine.AffinityOf(0)
	if err != nil {
		return nil, err
	}
	if err := machine.SetAffinity(unix.Gettid(), cpus[:1]); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, machine.SetAffinity(unix.Gettid(), cpus)) }()
	c, err := dialSelf()
	if err != nil {
		return nil, err
	}
	defer c.close()
	own := kernel.Config{CPUs: cpus, Events: manyEvents, Ports: []uint16{c.port},
		PIDs: []int{os.Getpid()}}
	events, err := recorded(tracer, own, c)
	if err != nil {
		return nil, err
	}
	s, err := t.beside(ctx, tracer, kernel.Config{CPUs: cpus, Events: 1, Copies: copies,
		Ports: []uint16{foreign}}, c)
	if err != nil {
		return nil, err
	}
	out := table{title: "Traces: packets of others",
		text: fmt.Sprintf("A connection over the loopback device, both ends one thread, while "+
			"%d copies of each program are attached for others, in turns with none attached. It "+
			"holds if an event costs at most %.2f µs for a copy.", copies,
			bystanderLimit/microsecond),
		head: []string{"turns", "events of a trip", "an event"}}
	each := amount{s.Median, s.HalfWidth()}.times(1 / (events * copies))
	v := each.atMost(bystanderLimit)
	if s.N < stats.MinValues || math.IsNaN(s.Median) {
		v = tooWide
	}
	out.add(v, strconv.Itoa(s.N), fmt.Sprintf("%.1f", events), fmt.Sprintf("%.3f ±%.3f µs",
		each.at/microsecond, each.half/microsecond))
	return []table{out}, nil
}

func recorded(tracer *kernel.Tracer, own kernel.Config, c *selfConn) (perTrip float64, err error) {
	r, err := tracer.Attach(own)
	if err != nil {
		return 0, err
	}
	now := clock.Now()
	r.Between(now, now+forAnHour)
	_, err = c.trips(logged)
	if err = errors.Join(err, r.Stop()); err != nil {
		return 0, err
	}
	byCPU, lost := r.Log()
	n := 0
	for _, events := range byCPU {
		n += len(events)
	}
	if n < logged || lost > 0 {
		return 0, fmt.Errorf("%d events of %d trips were recorded, %d lost", n, logged, lost)
	}
	return float64(n) / logged, nil
}

// beside returns how much longer a trip takes while programs are attached, in s, than just before
// and after.
func (t *trial) beside(ctx context.Context, tracer *kernel.Tracer, others kernel.Config,
	c *selfConn) (stats.Summary, error) {
	var more []float64
	before, err := c.trips(burst)
	for until := time.Now().Add(t.scale.beside); err == nil && ctx.Err() == nil &&
		time.Now().Before(until); {
		var r *kernel.Recording
		if r, err = tracer.Attach(others); err != nil {
			break
		}
		now := clock.Now()
		r.Between(now, now+forAnHour)
		during, failed := c.trips(burst)
		err = errors.Join(failed, r.Stop())
		after, failed := c.trips(burst)
		more = append(more, during-(before+after)/2)
		before, err = after, errors.Join(err, failed)
	}
	return stats.Summarize(more), err
}

// selfConn is a TCP connection over the loopback device, both ends of which this thread has.
type selfConn struct {
	ends [2]int
	port uint16
}

func dialSelf() (*selfConn, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	near, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		return nil, err
	}
	far, err := l.Accept()
	if err != nil {
		return nil, errors.Join(err, near.Close())
	}
	a, errA := blocking(near)
	b, errB := blocking(far)
	return &selfConn{[2]int{a, b}, uint16(l.Addr().(*net.TCPAddr).Port)}, errors.Join(errA, errB)
}

func (c *selfConn) close() {
	for _, fd := range c.ends {
		_ = unix.Close(fd)
	}
}

// trips returns the median duration of n round trips of a byte, in s, by groups.
func (c *selfConn) trips(n int) (float64, error) {
	const group = 10 // the clock is read once for each
	var took []float64
	b := make([]byte, 1)
	for range n / group {
		from := clock.Now()
		for range group {
			for i, fd := range c.ends {
				if _, err := unix.Write(fd, b); err != nil {
					return 0, err
				}
				if _, err := unix.Read(c.ends[1-i], b); err != nil {
					return 0, err
				}
			}
		}
		took = append(took, float64(clock.Now()-from)/group/1e9)
	}
	return stats.Median(took), nil
}
