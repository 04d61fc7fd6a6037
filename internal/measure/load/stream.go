package load

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// stream imitates LLM token streaming at a fixed pace. A token's delay is the time from when it was
// due to its arrival, so that waiting behind a stall counts. Both ends are event loops, because a
// thousand threads would themselves be late.

const startEvery = int64(workload.StartEvery)

// beginsAfter returns when session i starts, in ns after the load's start. The golden ratio spreads
// any number of sessions evenly over a token's period.
func beginsAfter(i int, period float64) int64 {
	whole := math.Floor(float64(int64(i)*startEvery) / period)
	_, phase := math.Modf(float64(i) * (math.Phi - 1))
	return int64((whole + phase) * period)
}

func streamThreads(o Options) int {
	return max(1, min(workload.Of(o.Load).Threads(o.Load), len(o.CPUs), max(1, o.Load.Streams)))
}

type streamEnd struct {
	poll   *poller
	reads  []reading
	writes []writing
	frames []sseFrame
	ask    []byte
	due    calendar

	gap, first, overrun, late, transit, wait *hdrhistogram.Histogram
	// alive is the number of connections that the other end still uses.
	alive int
	// starts has the sessions' starts at the client, in order and in ns after the load's start.
	starts []int64
	begun  int
	polled int64
}

// period returns the time between two tokens, in ns.
func period(s sample.Load) float64 { return float64(time.Second) / workload.StreamOf(s).Pace }

func prepareStream(t *thread, server bool) error {
	p, err := newPoller(len(t.fds))
	if err != nil {
		return err
	}
	s := &streamEnd{poll: p, frames: tokenFrames(),
		ask: tokenRequest(workload.StreamOf(t.spec).Tokens), alive: len(t.fds),
		gap: t.times[workload.TimeGap], first: t.times[workload.TimeFirst],
		overrun: t.times[workload.TimeOverrun], late: t.times[workload.TimeLate],
		transit: t.times[workload.TimeTransit], wait: t.times[workload.TimeWait]}
	t.stream = s
	t.counts = map[string]int64{workload.CountBlocked: 0}
	if server {
		s.writes = make([]writing, len(t.fds))
		s.due.init(len(t.fds))
	} else {
		t.counts = map[string]int64{workload.CountTokens: 0, workload.CountGlued: 0,
			workload.CountOverdue: 0}
		s.reads = make([]reading, len(t.fds))
		for i := range t.fds {
			s.starts = append(s.starts, beginsAfter(t.index+i*t.of, period(t.spec)))
		}
		slices.Sort(s.starts)
	}
	for i, fd := range t.fds {
		if err := p.watch(fd, i); err != nil {
			return err
		}
	}
	return nil
}

func checkTokens(s sample.Load) error {
	const slowest, fastest = 1, 100_000
	if o := workload.StreamOf(s); o.Tokens < 1 || o.Tokens > workload.MaxTokens ||
		!(o.Pace >= slowest && o.Pace <= fastest) {
		return fmt.Errorf(
			"load %+v: tokens must be from 1 to %d and their pace from %d to %d per second", s,
			workload.MaxTokens, slowest, fastest)
	}
	return nil
}

// calendar is a heap of connections, ordered by when their next token is due.
type calendar struct {
	at []int64 // when each connection's next token is due
	h  []int32
}

func (c *calendar) init(n int) { c.at, c.h = make([]int64, n), make([]int32, 0, n) }

func (c *calendar) next() (i int, at int64, ok bool) {
	if len(c.h) == 0 {
		return 0, math.MaxInt64, false
	}
	return int(c.h[0]), c.at[c.h[0]], true
}

func (c *calendar) add(i int, at int64) {
	c.at[i] = at
	k := len(c.h)
	c.h = append(c.h, int32(i))
	for k > 0 {
		up := (k - 1) / 2
		if c.at[c.h[up]] <= at {
			break
		}
		c.h[k], c.h[up] = c.h[up], c.h[k]
		k = up
	}
}

func (c *calendar) later(at int64) {
	c.at[c.h[0]] = at
	c.sink()
}

func (c *calendar) drop() {
	last := len(c.h) - 1
	c.h[0] = c.h[last]
	c.h = c.h[:last]
	c.sink()
}

func (c *calendar) sink() {
	for k := 0; ; {
		down := 2*k + 1
		if down >= len(c.h) {
			return
		}
		if r := down + 1; r < len(c.h) && c.at[c.h[r]] < c.at[c.h[down]] {
			down = r
		}
		if c.at[c.h[k]] <= c.at[c.h[down]] {
			return
		}
		c.h[k], c.h[down] = c.h[down], c.h[k]
		k = down
	}
}
