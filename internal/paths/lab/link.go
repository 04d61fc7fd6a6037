package lab

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// linked follows `--link server:db` with "icc": false: two rules for each pair accept its packets,
// which isolation would drop (Docker Engine 28.5.2).
func (s *site) linked() error {
	d := daemon{noICC: true}
	servers := s.serverSeats()
	for i, at := range s.clientSeats(s.a) {
		for _, p := range s.ports(docker0.of(servers[i%len(servers)]).Addr(), 0) {
			d.links = append(d.links, pair{docker0.of(at).Addr(), p.to})
		}
	}
	if err := s.install(s.a, d); err != nil {
		return err
	}
	if err := s.addServers(s.attach(docker0, d)); err != nil {
		return err
	}
	p := s.path
	var rules []path.Hop
	for i, at := range s.clientSeats(s.a) {
		c, err := s.bridged(s.a, docker0, at)
		if err != nil {
			return err
		}
		s.Clients = append(s.Clients, c)
		box := contained(s.a, c.ns, c.name)
		box.hosts = d.links[i].server.Addr().String() + "\tdb server\n" +
			d.links[i].client.String() + "\tclient\n"
		s.PlaceClient(box)
		// The rule sees the first packet of each connection.
		r := s.portRule(mode.HopAccept, "filter", "DOCKER", tagLink, i, path.Matches)
		r.Clients = p.Spec.Alone(i)
		rules = append(rules, r)
	}
	p.Hops = slices.Concat(s.ClientHops(), rules,
		[]path.Hop{s.switched(docker0)}, s.ServerHops())
	p.Guards = []path.Hop{local.Unused(s.bridgeHop(s.a, docker0.bridge, true)),
		s.noDefaultNAT()}
	return nil
}
