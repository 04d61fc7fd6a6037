package fake

import (
	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func (p place) moveSlices(o worker.Request, when load.Schedule, rate float64, n int,
	reply *worker.Reply) {
	for k, s := range when.Slices {
		var x load.SliceStats
		if s.To > s.From {
			x = slice(o, s, rate)
		}
		x.Drained = s.End
		if p.builder.Slice != nil {
			p.builder.Slice(p.spec, o.Role, n, k, &x)
		}
		reply.Slices = append(reply.Slices, x)
		reply.Done.TotalSent += x.Sent
		reply.Done.TotalRecv += x.Received
	}
}

func slice(o worker.Request, s load.Slice, rate float64) load.SliceStats {
	x := load.SliceStats{Width: s.To - s.From, CPU: (s.To - s.From) / 2}
	amount := int64(rate * float64(x.Width) / 1e9)
	switch {
	case workload.Of(o.Load).Trips:
		x.Sent, x.Received = amount, amount
		x.Trips, x.Median = amount, int64(1e9/rate)
		if o.Bounds {
			const few = 100 // of a slice's million
			x.Bounds = []int64{s.From}
			for range min(amount, few) {
				x.Bounds = append(x.Bounds, x.Median)
			}
		}
	case workload.BulkOf(o.Load).Bidir:
		x.Sent, x.Received = amount, amount
	case sends(o):
		x.Sent = amount
	default:
		x.Received = amount
	}
	return x
}

func sends(o worker.Request) bool {
	return (o.Role == worker.Client) != workload.BulkOf(o.Load).Reverse
}
