package swarm

import (
	"fmt"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/machine"
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

// overIPv6 sets both ends' addresses to IPv6 addresses of the nodes' cards in one network. The
// swarm knows only one address of a node, usually an IPv4 one.
func overIPv6(server, client *end) error {
	usable := func(p netip.Prefix) bool {
		return p.Addr().Is6() && p.Addr().IsGlobalUnicast() && !p.IsSingleIP()
	}
	for _, a := range server.Card.Addrs {
		for _, b := range client.Card.Addrs {
			if usable(a) && usable(b) && a.Masked() == b.Masked() {
				server.Addr, client.Addr = a.Addr(), b.Addr()
				return nil
			}
		}
	}
	return &machine.UnsupportedError{Missing: fmt.Sprintf(
		"the cards of nodes %s and %s, %s and %s, have no IPv6 addresses in one network",
		server.Name, client.Name, server.Card.Name, client.Card.Name),
		Remedy: "addresses of one network on both, as by ip -6 address add; or -4"}
}
