package lab

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// netkitPairs uses netkit's L3 mode (Linux 6.7), with routes on the machine to the containers'
// addresses, as Cilium does. Without a BPF program both ends forward packets.
func (s *site) netkitPairs() error {
	p := s.path
	seats := s.serverSeats()
	if p.Spec.From == mode.FromContainer {
		seats = append(seats, s.clientSeats(s.a)...)
	}
	var d daemon
	for _, at := range seats {
		d.foreign = append(d.foreign, at.netkit())
	}
	if err := s.install(s.a, d); err != nil {
		return err
	}
	if recipe.Dual(p.Spec) { // Docker turns on forwarding of IPv4 only
		if err := s.a.ns.Do(func() error { return sysctl.Set(ipForward6, "1") }); err != nil {
			return err
		}
	}
	if err := s.addServers(s.netkitPair); err != nil {
		return err
	}
	p.Guards = []path.Hop{s.noDefaultNAT(), local.Unused(s.loHop(s.a.ns, s.a.name))}
	if p.Spec.From == mode.FromRemote {
		if err := route(s.b, tollNet, s.a); err != nil {
			return err
		}
	}
	return s.placeClients(func() error { return s.addClients(s.a, s.netkitPair) })
}

func (at seat) netkit() string { return "nk-" + at.end }

func (s *site) netkitPair(at seat) (*container, error) {
	c, err := s.box(s.a, at.name)
	if err != nil {
		return nil, err
	}
	c.kind, c.port, c.portNS = mode.HopNetkit, at.netkit(), s.a.ns
	tid, err := c.ns.TID()
	if err != nil {
		return nil, err
	}
	self := single(tollNet.of(at).Addr())
	if err := s.a.ns.Do(func() error { return link.AddNetkit(c.port, inside, tid) }); err != nil {
		return nil, fmt.Errorf("%s: %w", at.name, err)
	}
	if err := c.address(self, none); err != nil {
		return nil, err
	}
	if err := c.alsoSix(single(tollNet.of6(at).Addr()), none); err != nil {
		return nil, err
	}
	if err := c.leaveBy(inside); err != nil {
		return nil, err
	}
	return c, s.a.ns.Do(func() error {
		if err := link.Up(c.port); err != nil {
			return err
		}
		if err := link.AddDeviceRoute(self, c.port); err != nil || !c.addr6.IsValid() {
			return err
		}
		return link.AddDeviceRoute(c.addr6, c.port)
	})
}
