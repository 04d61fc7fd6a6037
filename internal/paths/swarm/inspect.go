package swarm

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// inspects adds a namespace that contains only the run's paths.
func (s *site) inspects(a *agent.Agent, file, where string) {
	s.spots = append(s.spots, cluster.Spot{Agent: a, At: agent.Spot{Namespace: file, Where: where}})
}

// inspectsOf adds devices of a namespace that the path shares with others.
func (s *site) inspectsOf(a *agent.Agent, file, where string, devices ...string) {
	s.spots = append(s.spots, cluster.Spot{Agent: a, At: agent.Spot{Namespace: file, Where: where, Devices: devices}})
}

// inspectable sets the path's Inspect. Of the nodes themselves it covers their cards, and the
// bridges and ports that the path crosses.
func (s *site) inspectable() {
	to := []netip.Addr{s.server.Addr, s.client.Addr}
	for _, e := range []*end{s.client, s.server} {
		a := e.Agent
		if e.inside != nil { // it may ask for all programs
			a = e.inside
		}
		s.inspectsOf(a, "", e.Where, e.Crossed()...)
		to = append(to, e.To...)
	}
	for i := range s.spots {
		if at := &s.spots[i].At; len(at.Devices) > 0 {
			at.To = to
		}
	}
	spots := s.spots
	s.path.Inspect = func() ([]path.Setting, error) { return cluster.Inspect(spots) }
}

// guard returns an error if something may already take packets past the path's hops, or if that
// cannot be determined. Nothing bypasses the one hop of host.
func (s *site) guard() error {
	all, err := s.path.Inspect()
	if err != nil || len(s.path.Hops) == 1 {
		return err
	}
	return path.Undiverted(all)
}
