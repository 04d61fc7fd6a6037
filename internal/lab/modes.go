package lab

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// native is a process of the machine, and a machine without Docker.
func (s *site) native() error {
	s.path.Server = on(s.a)
	s.onMachine()
	return nil
}

// host is a container that keeps the machine's network, on a machine with the
// rules of Docker Engine 28.5.2.
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
	s.path.Server = contained(s.a, s.a.ns, "container with the network of machine A")
	s.onMachine()
	s.path.Guards = append(s.path.Guards, s.noNAT())
	return nil
}

// onMachine places the client for a server in the machine's own namespace
// and lists the hops.
func (s *site) onMachine() {
	p := s.path
	p.Listen = netip.AddrPortFrom(anyAddr, serverPort)
	p.Dial = netip.AddrPortFrom(loopback, serverPort)
	switch p.Spec.From {
	case mode.FromRemote, mode.FromRemoteContainer:
		p.Client = on(s.b)
		if p.Spec.From == mode.FromRemoteContainer {
			p.Client = contained(s.b, s.b.ns, "container with the network of machine B")
		}
		p.Dial = netip.AddrPortFrom(s.a.addr.Addr(), serverPort)
		p.Hops = []path.Hop{s.wireHop()}
		p.Guards = []path.Hop{unused(s.loHop(s.a.ns, s.a.name))}
		return
	case mode.FromContainer:
		p.Client = contained(s.a, s.a.ns, "another container with the network of machine A")
	default:
		p.Client = on(s.a)
	}
	p.Hops = []path.Hop{s.loHop(s.a.ns, s.a.name)}
}

// shared is two containers in one network namespace.
func (s *site) shared() error {
	server, err := s.dockerServer(daemon{}, netip.AddrPort{})
	if err != nil {
		return err
	}
	s.serve(server)
	p := s.path
	p.Client = contained(s.a, server.ns, "another container with the network of "+server.name)
	p.Dial = netip.AddrPortFrom(loopback, serverPort)
	p.Hops = []path.Hop{s.loHop(server.ns, server.name)}
	p.Guards = []path.Hop{s.noNAT(), unused(s.hop(server, true))}
	return nil
}

// bridge is a container on a user-defined bridge, dialled by its address
// (devices, addresses and rules as Docker Engine 28.5.2 makes them).
func (s *site) bridge() error {
	server, err := s.dockerServer(daemon{}, netip.AddrPort{})
	if err != nil {
		return err
	}
	s.serve(server)
	p := s.path
	p.Guards = []path.Hop{s.noNAT()}
	if p.Spec.From == mode.FromHost {
		p.Client = on(s.a)
		p.Hops = []path.Hop{s.bridgeHop(s.a, tollNet.bridge, true), s.hop(server, true)}
		p.Guards = append(p.Guards, unused(s.loHop(s.a.ns, s.a.name)))
		return nil
	}
	client, err := s.dockerClient()
	if err != nil {
		return err
	}
	p.Hops = []path.Hop{s.hop(client, false), s.switched(client, server), s.hop(server, true)}
	// Switched, not routed: the machine's own stack sees nothing of it.
	p.Guards = append(p.Guards, unused(s.bridgeHop(s.a, tollNet.bridge, true)))
	return nil
}

// userNetwork is a daemon with one user-defined network.
func userNetwork(n dockerNet) daemon { return daemon{networks: []dockerNet{n}} }

// dockerServer puts Docker on machine A, with one user-defined network and
// perhaps a published port, and the server's container on it.
func (s *site) dockerServer(d daemon, publish netip.AddrPort) (*container, error) {
	n := dockerNet{network: tollNet, publish: publish, containers: []netip.Prefix{tollNet.nth(serverHost)}}
	if s.path.Spec.From == mode.FromContainer && s.path.Spec.Mode != mode.Shared {
		n.containers = append(n.containers, tollNet.nth(clientHost))
	}
	d.networks = append(d.networks, n)
	if err := s.install(s.a, d); err != nil {
		return nil, err
	}
	c, err := s.bridged(s.a, tollNet, serverHost, serverBox, serverPortName)
	if err == nil && d.noProxy {
		err = s.a.ns.Do(func() error { return link.SetHairpin(c.port) })
	}
	return c, err
}

// dockerClient makes the client's container beside the server's, and places
// the client in it.
func (s *site) dockerClient() (*container, error) {
	c, err := s.bridged(s.a, tollNet, clientHost, clientBox, clientPortName)
	if err == nil {
		s.path.Client = in(c)
	}
	return c, err
}

// remoteClient puts Docker on machine B, with the user-defined network n and
// the client's container on it, and places the client there.
func (s *site) remoteClient(n dockerNet) (*container, error) {
	if err := s.install(s.b, userNetwork(n)); err != nil {
		return nil, err
	}
	c, err := s.bridged(s.b, n.network, clientHost, remoteBox, clientPortName)
	if err == nil {
		s.path.Client = in(c)
	}
	return c, err
}

// switched is machine A's user-defined bridge between two containers.
func (s *site) switched(client, server *container) path.Hop {
	return s.switchedHop(s.a.ns, s.a.name, tollNet.bridge, client.port, server.port)
}
