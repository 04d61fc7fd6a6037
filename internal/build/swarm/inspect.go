package swarm

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/build/agent"
	"github.com/bridgetoll/bridgetoll/internal/build/cluster"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
)

// inspects adds a namespace that has nothing but the run's paths in it.
func (s *site) inspects(a *agent.Agent, file, where string) {
	s.spots = append(s.spots, cluster.Spot{Agent: a, At: agent.Spot{Namespace: file, Where: where}})
}

// inspectsOf adds devices of a namespace that the path shares with others.
func (s *site) inspectsOf(a *agent.Agent, file, where string, devices ...string) {
	s.spots = append(s.spots, cluster.Spot{Agent: a, At: agent.Spot{Namespace: file, Where: where, Devices: devices}})
}

// inspectable lets the path be inspected. Of the nodes themselves their cards are
// its, and the bridges and ports that it crosses.
func (s *site) inspectable() {
	to := []netip.Addr{s.server.Addr, s.client.Addr}
	for _, e := range []*end{s.client, s.server} {
		a := e.agent
		if e.inside != nil { // which may ask for all programs
			a = e.inside
		}
		s.inspectsOf(a, "", "node "+e.Name, append([]string{e.card.Name}, e.own...)...)
		to = append(to, e.to...)
	}
	for i := range s.spots {
		if at := &s.spots[i].At; len(at.Devices) > 0 {
			at.To = to
		}
	}
	spots := s.spots
	s.path.Inspect = func() ([]path.Setting, error) { return cluster.Inspect(spots) }
}

// guard refuses the path if something is there already that may take packets past
// its hops, or if that cannot be found out. Past the one hop of host nothing leads.
func (s *site) guard() error {
	all, err := s.path.Inspect()
	if err != nil || len(s.path.Hops) == 1 {
		return err
	}
	return path.Undiverted(all)
}
