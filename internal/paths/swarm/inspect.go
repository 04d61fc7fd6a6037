package swarm

import (
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// inspects adds a namespace that contains only the run's paths.
func (s *site) inspects(a *agent.Agent, file, where string) {
	s.spots = append(s.spots, cluster.Spot{Agent: a, At: agent.Spot{Namespace: file, Where: where}})
}

// inspectsOf adds the path's devices in a namespace that other programs also use.
func (s *site) inspectsOf(a *agent.Agent, file, where string, devices ...string) {
	s.spots = append(s.spots, cluster.Spot{
		Agent: a, At: agent.Spot{Namespace: file, Where: where, Devices: devices}})
}

func (s *site) inspectable() {
	ends := []*cluster.End{&s.client.End, &s.server.End}
	spots := cluster.Watched(ends, s.spots, s.server.Addr, s.client.Addr)
	s.path.Inspect = func() ([]path.Setting, error) { return cluster.Inspect(spots) }
}

// guard returns an error if a setting may let packets bypass a hop, or if the settings cannot be
// read. host has one hop, which packets cannot bypass.
func (s *site) guard() error {
	all, err := s.path.Inspect()
	if err != nil || len(s.path.Hops) == 1 {
		return err
	}
	return path.Undiverted(all)
}
