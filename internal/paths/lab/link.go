package lab

import (
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

// linked follows `--link server:db` with "icc": false: two rules for each pair accept its packets,
// which isolation would drop (Docker Engine 28.5.2).
func (s *site) linked() error {
	s.home = docker0
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
	for i, at := range s.clientSeats(s.a) {
		c, err := s.bridged(s.a, docker0, at)
		if err != nil {
			return err
		}
		s.Clients = append(s.Clients, c)
		box := contained(c.ns, c.name)
		box.hosts = d.links[i].server.Addr().String() + "\tdb server\n" +
			d.links[i].client.String() + "\tclient\n"
		s.PlaceClient(box)
	}
	s.path.Guards = []path.Hop{local.Unused(s.bridgeHop(s.a, docker0.bridge, true)),
		s.noDefaultNAT()}
	return nil
}
