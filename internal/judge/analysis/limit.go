package analysis

import (
	"cmp"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	saturated      = 0.95 // share of a window in which one thread or CPU was busy
	saturatedProxy = 0.90 // a proxy's threads migrate and hand over
	softIRQBound   = 0.90
)

// wireOver is the most that a wire carries, burst included, relative to its rate.
const wireOver = 1.1

// LimitOf names the limit of the load: the wire, a network card, a shaper, or the party or core
// that was busy all the time. It returns "" if the load reached no known limit.
func (j *Run) LimitOf(s *Series) string {
	if c := j.capacity(s); c.reached() {
		return c.Limit
	}
	return cmp.Or(workload.Of(s.Load).Limit(s.seen()), s.busy())
}

// wireShare returns the achieved share of the wire's rate, or 0 if the path has no wire or the wire
// no rate.
func (j *Run) wireShare(s *Series) float64 {
	w := j.File.Header.Plan.Wire
	p, _ := j.File.Header.PathOf(s.Cell)
	if w == nil || w.Rate == 0 || !slices.Contains(p.Hops, string(mode.HopWire)) {
		return 0
	}
	return s.fastest() / float64(w.Rate)
}

func (s *Series) busy() string {
	var client, server, clientCPU, serverCPU, proxy, softirq, all float64
	n := float64(len(s.Visits))
	if n == 0 {
		return ""
	}
	for _, v := range s.Visits {
		client += v.Client.BusiestCPU / n
		server += v.Server.BusiestCPU / n
		clientCPU += pinnedBusy(*v, v.Client, v.Server) / n
		serverCPU += pinnedBusy(*v, v.Server, v.Client) / n
		if v.Elapsed < workload.Shortest {
			continue
		}
		if v.Proxy != nil {
			proxy += v.Proxy.CPU / v.Elapsed / n
		}
		one := 0.0
		for _, c := range v.Machine {
			one = max(one, c.SoftIRQ/v.Elapsed)
		}
		softirq += one / n
		if len(v.Machine) > 0 {
			all += workload.Busy(*v) / v.Elapsed / float64(len(v.Machine)) / n
		}
	}
	switch {
	case client >= saturated && client >= server:
		return "client core"
	case server >= saturated:
		return "server core"
	case proxy >= saturatedProxy:
		return "proxy"
	case softirq >= softIRQBound:
		return "softirq core"
	case all >= saturated:
		return "all cores"
	case clientCPU >= saturated:
		return "client core"
	case serverCPU >= saturated:
		return "server core"
	}
	return ""
}

// pinnedBusy returns the busy share of the CPU to which only party p was pinned, or 0 if there is
// none. That includes the softirq work of a sender, which with CONFIG_IRQ_TIME_ACCOUNTING is not in
// the sender's own clock.
func pinnedBusy(v sample.Visit, p, other sample.Party) float64 {
	if len(p.CPUs) != 1 || slices.Contains(other.CPUs, p.CPUs[0]) || len(other.CPUs) == 0 ||
		v.Proxy != nil || v.Elapsed < workload.Shortest {
		return 0
	}
	for _, c := range v.Machine {
		if c.ID == p.CPUs[0] {
			return c.Busy() / v.Elapsed
		}
	}
	return 0
}
