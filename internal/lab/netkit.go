package lab

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// netkitPairs is a container behind a netkit pair in its routed mode, which
// has neither Ethernet headers nor ARP, with a route on the machine for the
// container's address (Linux 6.7's drivers/net/netkit.c; Cilium sets its
// containers up so, with BPF programs besides). Without a BPF program both
// ends forward.
func (s *site) netkitPairs() error {
	p := s.path
	server, client := "nk-server", "nk-client"
	if err := s.install(s.a, daemon{foreign: []string{server, client}}); err != nil {
		return err
	}
	attach := func(host byte, name, port string) (*container, error) {
		c, err := s.box(s.a, name)
		if err != nil {
			return nil, err
		}
		c.kind, c.port, c.portNS = mode.HopNetkit, port, s.a.ns
		tid, err := c.ns.TID()
		if err != nil {
			return nil, err
		}
		self := single(tollNet.nth(host).Addr())
		if err := s.a.ns.Do(func() error { return link.AddNetkit(port, inside, tid) }); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := c.address(self, none); err != nil {
			return nil, err
		}
		if err := c.ns.Do(func() error { return link.AddDeviceRoute(anyPrefix, inside) }); err != nil {
			return nil, err
		}
		if err := s.a.ns.Do(func() error { return link.Up(port) }); err != nil {
			return nil, err
		}
		return c, s.a.ns.Do(func() error { return link.AddDeviceRoute(self, port) })
	}
	box, err := attach(serverHost, serverBox, server)
	if err != nil {
		return err
	}
	s.serve(box)
	p.Guards = []path.Hop{s.noDefaultNAT(), unused(s.loHop(s.a.ns, s.a.name))}
	last := s.hop(box, true)
	switch p.Spec.From {
	case mode.FromHost:
		p.Client = on(s.a)
		p.Hops = []path.Hop{last}
	case mode.FromContainer:
		other, err := attach(clientHost, clientBox, client)
		if err != nil {
			return err
		}
		p.Client = in(other)
		p.Hops = []path.Hop{s.hop(other, false), last}
	case mode.FromRemote:
		if err := route(s.b, tollNet, s.a); err != nil {
			return err
		}
		p.Client = on(s.b)
		p.Hops = []path.Hop{s.wireHop(), last}
	}
	return nil
}
