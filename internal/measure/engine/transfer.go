package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// slowest is the least rate (bytes per second) of a transfer, unless the wire is slower.
const slowest = 10e6

// leastMetered is the shortest transfer (s) whose CPU time is recorded: /proc/stat counts ticks of
// 10 ms.
const leastMetered = 0.05

func transferLimit(l sample.Load, w *sample.Wire) time.Duration {
	rate := slowest
	if w != nil && w.Rate > 0 {
		const (
			bitsPerByte = 8
			half        = 2
		)
		rate = min(rate, float64(w.Rate)/bitsPerByte/half)
	}
	seconds := float64(workload.BulkOf(l).Bytes) * float64(max(1, l.Streams)) / rate
	return openTimeout + time.Duration(seconds*float64(time.Second))
}

// transfer runs a load that ends after a number of bytes. It has no warm-up. The meters are read at
// the common start and when both ends have replied.
func (r *run) transfer(ctx context.Context, e *ends, l sample.Load, when load.Schedule,
	v *sample.Visit) (servers, clients []worker.Reply, err error) {
	limit := transferLimit(l, r.Plan.Wire)
	when.From, when.To, when.End = when.Start, when.Start+int64(limit), 0
	far := e.distant
	if err := far.meter(ctx, when.Start, 0); err != nil {
		return nil, nil, err
	}
	if err := e.schedule(when); err != nil {
		return nil, nil, err
	}
	pids := pidsOf(e.path, nil)
	first, err := r.readAt(ctx, when.Start, pids)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := r.Clock.Timeout(
		ctx, limit, fmt.Errorf("the transfer of %d bytes per connection did not finish within %s",
			workload.BulkOf(l).Bytes, limit.Round(time.Second)))
	defer cancel()
	together := r.watch(e, v.Cell)
	servers, clients, err = e.replies(ctx)
	v.Together = together()
	if err != nil {
		return nil, nil, err
	}
	last, err := r.readAt(ctx, r.Clock.Now(), pids)
	if err != nil {
		return nil, nil, err
	}
	if err := e.note(l, servers, clients, v); err != nil {
		return nil, nil, err
	}
	// In a shorter one, ticks and the start and end of the workers would dominate.
	planned := max(v.Client.Window, v.Server.Window)
	fits := func(took float64) bool {
		return took >= leastMetered && took <= planned*(1+maxMeterError)
	}
	e.metered(first, last, fits, v)
	if err := far.note(ctx, v, fits); err != nil {
		return nil, nil, err
	}
	return servers, clients, far.sureOf(planned)
}
