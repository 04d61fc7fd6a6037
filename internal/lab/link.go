package lab

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// linked is a container that was started with `--link server:db` beside a
// daemon with "icc": false: the default network keeps containers apart, and
// one pair of rules lets the linked two through (Docker Engine 28.5.2).
func (s *site) linked() error {
	p := s.path
	client, target := docker0.nth(clientHost).Addr(), netip.AddrPortFrom(docker0.nth(serverHost).Addr(), serverPort)
	if err := s.install(s.a, daemon{noICC: true, links: []pair{{client, target}}}); err != nil {
		return err
	}
	server, err := s.bridged(s.a, docker0, serverHost, serverBox, serverPortName)
	if err != nil {
		return err
	}
	other, err := s.bridged(s.a, docker0, clientHost, clientBox, clientPortName)
	if err != nil {
		return err
	}
	s.serve(server)
	box := contained(s.a, other.ns, other.name)
	box.hosts = target.Addr().String() + "\tdb server\n" + client.String() + "\tclient\n"
	p.Client = box
	// The rule sees each connection's first packet; later ones are accepted
	// before, because they belong to it.
	p.Hops = []path.Hop{s.hop(other, false),
		ruleHop(s.a, mode.HopAccept, "filter", "DOCKER", tagLink, path.Matches),
		s.switchedHop(s.a.ns, s.a.name, docker0.bridge, other.port, server.port), s.hop(server, true)}
	p.Guards = []path.Hop{unused(s.bridgeHop(s.a, docker0.bridge, true)),
		s.noDefaultNAT()}
	return nil
}
