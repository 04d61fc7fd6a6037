package engine

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// headroomShare is the share of the headroom that a visit plans to use, because rates vary and the
// last ports are slow to find.
const headroomShare = 0.9

// prepare frees the ports and tracking entries of a path for a load with brief connections. It
// returns the load, shortened if it would otherwise use them up.
func (r *run) prepare(p *path.Path, l sample.Load, v *sample.Visit) (sample.Load, error) {
	if !workload.Of(l).Brief || p.Drain == nil {
		return l, nil
	}
	headroom, err := p.Drain()
	if err != nil {
		return l, err
	}
	v.Headroom = &headroom
	cut := fitted(l, headroom.Budget, r.opening(v.Cell, l))
	if cut != l {
		headroom.Window = cut.Window
	}
	return cut, nil
}

// drain frees ports and tracking entries after the visit, and records in v how many sockets it left
// in TIME_WAIT.
func (r *run) drain(p *path.Path, v *sample.Visit) {
	if v.Headroom == nil {
		return
	}
	headroom, err := p.Drain()
	if err != nil {
		v.Headroom.Error = err.Error()
		return
	}
	v.Headroom.Left = headroom.TimeWait
	if v.Headroom.Error == "" {
		v.Headroom.Error = headroom.Error
	}
}

// opening returns the connections per second of the cell's last visit, or 0.
func (r *run) opening(cell int, l sample.Load) float64 {
	for _, v := range slices.Backward(r.visits) {
		switch c := v.Client; {
		case v.Cell != cell || c.Connections == 0:
		case c.Window > 0:
			return float64(c.Trips) / c.Window
		default:
			return float64(c.Connections) / l.Warmup
		}
	}
	return 0
}

// fitted returns the load, shortened if at rate (connections per second) it would open more than
// budget.
func fitted(l sample.Load, budget int, rate float64) sample.Load {
	headroom := headroomShare*float64(budget) - rate*tail.Seconds()
	if need := rate * (l.Warmup + l.Window); need > 0 && need > headroom {
		share := max(0, headroom/need)
		l.Warmup, l.Window = share*l.Warmup, max(share*l.Window, leastWindow)
	}
	return l
}

// leastWindow is the shortest window, in s, that a visit is planned with.
const leastWindow = 0.005

// leastCut is the shortest measured window, in s, of a visit that counts after it ended early.
const leastCut = 0.01

// exhausted reports whether the client used up v.Headroom. It then removes from v the readings of
// the machine's clocks, which cover more than the client's window. The error means that this window
// was too short for the visit to count.
func exhausted(v *sample.Visit) (bool, error) {
	if v.Client.Counts[workload.EndedEarly] == 0 {
		return false, nil
	}
	v.Metered = v.WithoutCPU()
	v.Proxy = nil
	if v.Client.Window >= leastCut {
		return true, nil
	}
	return true, fmt.Errorf("%s after %d connections, before the window began",
		exhaustion(v.Headroom), v.Client.Connections)
}

func exhaustion(r *sample.Headroom) string {
	if r != nil && r.Limit == sample.LimitTracking {
		return "conntrack-full: the connection table was full"
	}
	return "ports-exhausted: the client ran out of ephemeral ports"
}
