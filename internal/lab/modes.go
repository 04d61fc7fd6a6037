package lab

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// native is a process of the machine, and a machine without Docker.
func (l *Lab) native(s *site, p *path.Path) error {
	p.Server = s.in(s.a)
	s.onMachine(p)
	return nil
}

// host is a container that keeps the machine's network.
func (l *Lab) host(s *site, p *path.Path) error {
	if err := s.a.ns.Do(func() error { return daemon{}.install(p) }); err != nil {
		return err
	}
	p.Server = s.inside(s.a.ns, "container with the network of machine A")
	s.onMachine(p)
	p.Guards = append(p.Guards, s.natGuards(daemon{})...)
	return nil
}

// onMachine places the client for a server in the machine's own namespace
// and lists the hops.
func (s *site) onMachine(p *path.Path) {
	p.Listen = netip.AddrPortFrom(anyAddr, serverPort)
	p.Dial = netip.AddrPortFrom(loopback, serverPort)
	switch p.Spec.From {
	case mode.FromRemote:
		p.Client = s.in(s.b)
		p.Dial = netip.AddrPortFrom(wireA.Addr(), serverPort)
		p.Hops = []path.Hop{s.wireHop()}
		p.Guards = []path.Hop{unused(loHop(s.a.ns, s.a.name))}
		return
	case mode.FromContainer:
		p.Client = s.inside(s.a.ns, "another container with the network of machine A")
	default:
		p.Client = s.in(s.a)
	}
	p.Hops = []path.Hop{loHop(s.a.ns, s.a.name)}
	p.Guards = []path.Hop{unused(s.wireHop())}
}

// shared is two containers in one network namespace.
func (l *Lab) shared(s *site, p *path.Path) error {
	server, err := s.dockerContainer(p, daemon{})
	if err != nil {
		return err
	}
	p.Server = s.inside(server.ns, server.name)
	p.Client = s.inside(server.ns, "another container with the network of "+server.name)
	p.Listen = netip.AddrPortFrom(anyAddr, serverPort)
	p.Dial = netip.AddrPortFrom(loopback, serverPort)
	p.Hops = []path.Hop{loHop(server.ns, server.name)}
	p.Guards = append(s.natGuards(daemon{}), unused(server.vethHop(true)))
	return nil
}

// bridge is a container on a user-defined bridge, dialled by its address.
func (l *Lab) bridge(s *site, p *path.Path) error {
	server, err := s.dockerContainer(p, daemon{})
	if err != nil {
		return err
	}
	p.Server = s.inside(server.ns, server.name)
	p.Listen = netip.AddrPortFrom(anyAddr, serverPort)
	p.Dial = netip.AddrPortFrom(server.addr.Addr(), serverPort)
	p.Guards = s.natGuards(daemon{})
	if p.Spec.From == mode.FromHost {
		p.Client = s.in(s.a)
		p.Hops = []path.Hop{s.bridgeHop(true), server.vethHop(true)}
		p.Guards = append(p.Guards, unused(loHop(s.a.ns, s.a.name)))
		return nil
	}
	client, err := s.clientContainer()
	if err != nil {
		return err
	}
	p.Client = s.inside(client.ns, client.name)
	p.Hops = []path.Hop{client.vethHop(false), s.switchedHop(client, server), server.vethHop(true)}
	// Switched, not routed: the machine's own stack sees nothing of it.
	p.Guards = append(p.Guards, unused(s.bridgeHop(true)))
	return nil
}

// dockerContainer puts Docker on machine A and the server's container on its
// user-defined network.
func (s *site) dockerContainer(p *path.Path, d daemon) (*container, error) {
	d.containers = []netip.Prefix{serverAddr}
	if p.Spec.From == mode.FromContainer && p.Spec.Mode != mode.Shared {
		d.containers = append(d.containers, clientAddr)
	}
	if err := s.a.ns.Do(func() error { return d.install(p) }); err != nil {
		return nil, err
	}
	c, err := s.addContainer("server container", "veth-server", serverAddr)
	if err == nil && d.noProxy {
		err = s.a.ns.Do(func() error { return link.SetHairpin(c.port) })
	}
	return c, err
}

func (s *site) clientContainer() (*container, error) {
	return s.addContainer("client container", "veth-client", clientAddr)
}

// natGuards are the rules that a path without NAT must not hit.
func (s *site) natGuards(d daemon) []path.Hop {
	guards := []path.Hop{s.ruleHop(mode.HopSNAT, "POSTROUTING", tagMasq, path.Untouched)}
	if d.publish.IsValid() {
		guards = append(guards, s.ruleHop(mode.HopDNAT, "DOCKER", tagPublish, path.Untouched))
	}
	return guards
}

// ruleHop is a rule of A's nat table.
func (s *site) ruleHop(kind mode.HopKind, chain, tag string, e path.Expect) path.Hop {
	return path.Hop{Kind: kind, Name: "nat " + chain + " " + tag, Where: s.a.name, Expect: e,
		Read: func() (out sample.Counters, err error) {
			err = s.a.ns.Do(func() error {
				n, err := nft.Hits("nat", chain, tag)
				out.Hits = n.Packets
				return err
			})
			return out, err
		}}
}

// unused turns a hop into a guard.
func unused(h path.Hop) path.Hop {
	h.Expect = path.Untouched
	return h
}
