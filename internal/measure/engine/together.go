package engine

import "github.com/bridgetoll/bridgetoll/internal/machine/meter"

// mostPairs is the most pairs of ends whose CPUs are watched. Larger crowds share all CPUs.
const mostPairs = 8

// watch samples whether unpinned ends run on one CPU until stop, which returns the share of samples
// in which they did, or nil if unknown.
func (r *run) watch(e *ends, cell int) (stop func() *float64) {
	var pairs []meter.Pair
	if cpus := r.cpus(cell); len(cpus.Client)+len(cpus.Server) == 0 {
		pairs = e.pairs()
	}
	return r.watchPairs(pairs)
}

func (r *run) watchPairs(pairs []meter.Pair) (stop func() *float64) {
	if len(pairs) == 0 {
		return func() *float64 { return nil }
	}
	return r.Meter.Together(pairs...)
}

// pairs returns nil if not each server has one client, or some are not on this machine.
func (e *ends) pairs() []meter.Pair {
	if len(e.clients) != len(e.servers) || len(e.clients) > mostPairs {
		return nil
	}
	var out []meter.Pair
	for i, c := range e.clients {
		client, _ := e.of(i)
		to := e.path.Clients[client]
		p := meter.Pair{Client: c.proc.PID, Server: e.servers[to.Server].proc.PID}
		if to.Machine != nil || e.path.Servers[to.Server].Machine != nil || p.Client <= 0 ||
			p.Server <= 0 {
			return nil
		}
		out = append(out, p)
	}
	return out
}

func (p *pair) pids() []meter.Pair {
	client, server := p.client.proc.PID, p.server.proc.PID
	if client <= 0 || server <= 0 {
		return nil
	}
	return []meter.Pair{{Client: client, Server: server}}
}
