package lab

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func (s *site) native() error {
	s.onMachine(on(s.a))
	return nil
}

func (s *site) host() error {
	d := userNetwork(dockerNet{network: tollNet})
	if err := s.install(s.a, d); err != nil {
		return err
	}
	if s.path.Spec.From == mode.FromRemoteContainer {
		if err := s.install(s.b, d); err != nil {
			return err
		}
	}
	s.onMachine(contained(s.a.ns, "container with the network of machine A"))
	s.path.Guards = append(s.path.Guards, s.noNAT())
	return nil
}

func (s *site) onMachine(server path.Place) {
	p := s.path
	if p.Spec.To.Outside() {
		s.serveOutside()
	} else {
		s.serve(server, s.dialled())
	}
	switch p.Spec.From {
	case mode.FromRemote:
		s.PlaceClients(on(s.b))
	case mode.FromRemoteContainer:
		s.PlaceClients(contained(s.b.ns, "container with the network of machine B"))
	case mode.FromContainer:
		s.PlaceClients(contained(s.a.ns, "another container with the network of machine A"))
	default:
		s.PlaceClients(on(s.a))
	}
	if p.Spec.To.Over4() != mode.ToLoopback {
		p.Guards = []path.Hop{local.Unused(s.loHop(s.a.ns, s.a.name))}
	}
}

func (s *site) shared() error {
	if err := s.dockerServers(daemon{}, false); err != nil {
		return err
	}
	p := s.path
	p.Guards = []path.Hop{s.noNAT()}
	for i, c := range s.Servers {
		s.Dial[i] = netip.AddrPortFrom(s.path.Spec.Loopback(), serverPort)
		p.Guards = append(p.Guards, local.Unused(c.Hop(true)))
	}
	for i := range s.clientSeats(s.a) {
		pod := s.Servers[i%len(s.Servers)]
		s.PlaceClient(contained(pod.ns, "another container with the network of "+pod.name))
	}
	return nil
}

func (s *site) bridge() error {
	if err := s.dockerServers(daemon{}, false); err != nil {
		return err
	}
	p, unused := s.path, s.loHop(s.a.ns, s.a.name)
	if !p.Spec.To.Outside() {
		p.Guards = []path.Hop{s.noNAT()}
		if p.Spec.From == mode.FromContainer { // switched: the machine's own stack must not see it
			unused = s.bridgeHop(s.a, s.home.bridge, true)
		}
	}
	p.Guards = append(p.Guards, local.Unused(unused))
	return s.placeClients(func() error { return s.dockerClients(daemon{}) })
}

func (s *site) bridgeDefault() error {
	s.home = docker0
	return s.bridge()
}

func (s *site) addresses(n network) (out []netip.Prefix) {
	for _, at := range s.serverSeats() {
		out = append(out, n.of(at))
	}
	if s.path.Spec.From == mode.FromContainer && s.path.Spec.Mode != mode.Shared {
		for _, at := range s.clientSeats(s.a) {
			out = append(out, n.of(at))
		}
	}
	return out
}

func userNetwork(n dockerNet) daemon { return daemon{networks: []dockerNet{n}} }

func (s *site) dockerServers(d daemon, publish bool) error {
	n := dockerNet{network: s.home, containers: s.addresses(s.home)}
	if publish {
		for i, at := range s.serverSeats() {
			n.published = append(n.published, s.ports(
				s.home.of(at).Addr(), uint16(publishedPort+i))...)
		}
	}
	if s.home == docker0 {
		d.others, d.published = n.containers, n.published
	} else {
		d.networks = append(d.networks, n)
	}
	if err := s.install(s.engine, d); err != nil {
		return err
	}
	return s.addServers(s.attach(s.home, d))
}

func (s *site) attach(n network, d daemon) func(seat) (*container, error) {
	return func(at seat) (*container, error) {
		c, err := s.bridged(s.engine, n, at)
		if err == nil && d.noProxy { // a container may dial its own published port
			err = s.engine.ns.Do(func() error { return link.SetHairpin(c.port) })
		}
		return c, err
	}
}

func (s *site) dockerClients(d daemon) error { return s.addClients(s.a, s.attach(s.home, d)) }

// remoteClients places clients in containers on machine B. Docker's rules protect them, unless the
// network is routed.
func (s *site) remoteClients(n dockerNet) error {
	s.away = n.network
	for _, at := range s.clientSeats(s.b) {
		n.containers = append(n.containers, n.of(at))
	}
	if err := s.install(s.b, userNetwork(n)); err != nil {
		return err
	}
	return s.addClients(s.b, func(at seat) (*container, error) {
		return s.bridged(s.b, n.network, at)
	})
}

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

// routed uses a network with gateway_mode_ipv4=routed: peers have a route to it, and there is no
// NAT.
func (s *site) routed() error {
	p := s.path
	n := dockerNet{network: tollNet, routed: true}
	for _, at := range s.serverSeats() {
		n.published = append(n.published, s.ports(tollNet.of(at).Addr(), 0)...)
	}
	d := userNetwork(n)
	if p.Spec.From == mode.FromContainer && !p.Spec.To.Outside() {
		d.networks = append(d.networks, dockerNet{network: secondNet, routed: true})
	}
	if err := s.install(s.a, d); err != nil {
		return err
	}
	if err := s.addServers(func(at seat) (*container, error) {
		return s.bridged(s.a, tollNet, at)
	}); err != nil {
		return err
	}
	// Docker writes no NAT rules for this network. The default network's rule for IPv4 remains.
	p.Guards = []path.Hop{s.noDefaultNAT(),
		local.Unused(s.loHop(s.a.ns, s.a.name))}
	if p.Spec.To.Outside() {
		if err := s.dockerClients(d); err != nil {
			return err
		}
		return route(s.b, tollNet, s.a)
	}
	switch p.Spec.From {
	case mode.FromHost:
		s.PlaceClients(on(s.a))
	case mode.FromContainer:
		s.away = secondNet
		return s.addClients(s.a, func(at seat) (*container, error) {
			return s.bridged(s.a, secondNet, at)
		})
	case mode.FromRemote:
		if err := route(s.b, tollNet, s.a); err != nil {
			return err
		}
		s.PlaceClients(on(s.b))
	case mode.FromRemoteContainer:
		if err := s.remoteClients(dockerNet{network: remoteNet, routed: true}); err != nil {
			return err
		}
		return s.routeBoth(tollNet, remoteNet)
	}
	return nil
}

// routeBoth adds routes from each machine to the other one's network.
func (s *site) routeBoth(onA, onB network) error {
	if err := route(s.b, onA, s.a); err != nil {
		return err
	}
	return route(s.a, onB, s.b)
}

func route(m *hostMachine, to network, via *hostMachine) error {
	return m.ns.Do(func() error {
		if err := link.AddRoute(to.subnet, via.addr.Addr()); err != nil || !via.addr6.IsValid() {
			return err
		}
		return link.AddRoute(to.subnet6, via.addr6.Addr())
	})
}
