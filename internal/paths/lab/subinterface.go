package lab

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// macvlan follows Docker's macvlan driver (28.5.2) and pipework's macvlan form (at 9ba97f1).
// Neither changes the card or the rules.
func (s *site) macvlan() error {
	kind := strings.TrimPrefix(string(s.path.Spec.Mode), "macvlan-")
	if s.reflects() {
		if err := s.reflect(); err != nil {
			return err
		}
		s.Give(mode.HopWire, local.ReflectedHop(s.a.ns, s.a.name, wireName))
	}
	return s.subInterfaces(mode.HopMacvlan, func(si link.SubInterface) error {
		return link.AddMacvlan(si, kind)
	}, false)
}

// ipvlan follows Docker's ipvlan driver (28.5.2). In its routed modes the container has a network
// of its own, to which peers have a route.
func (s *site) ipvlan() error {
	kind := strings.TrimPrefix(string(s.path.Spec.Mode), "ipvlan-")
	return s.subInterfaces(mode.HopIPvlan, func(si link.SubInterface) error {
		return link.AddIPvlan(si, kind)
	}, kind != "l2")
}

// subInterfaces gives each container a sub-interface of its machine's card. If routed, the
// containers' networks are behind the machines; otherwise their addresses are in the outer network.
func (s *site) subInterfaces(kind mode.HopKind, add func(link.SubInterface) error,
	routed bool) error {
	networks := map[*hostMachine]network{s.a: outer, s.b: outer}
	if routed {
		networks = map[*hostMachine]network{s.a: tollNet, s.b: remoteNet}
		if err := s.routeBoth(tollNet, remoteNet); err != nil {
			return err
		}
	}
	return s.onLAN(lan{
		prepare: func(*hostMachine) error { return nil },
		attach: func(m *hostMachine, at seat) (*container, error) {
			c, err := s.box(m, at.name)
			if err != nil {
				return nil, err
			}
			c.kind = kind
			if err := s.subInterface(c, "sub-"+at.end, add); err != nil {
				return nil, fmt.Errorf("%s: %w", at.name, err)
			}
			if err := c.address(networks[m].of(at), none); err != nil {
				return c, err
			}
			if err := c.alsoSix(networks[m].of6(at), none); err != nil {
				return c, err
			}
			if routed {
				if err := c.leaveBy(inside); err != nil {
					return c, err
				}
			}
			return c, c.resolves()
		},
	})
}

// subInterface gives the container's device the name born until it is in the container, because on
// the machine eth0 is the card.
func (s *site) subInterface(c *container, born string, add func(link.SubInterface) error) error {
	tid, err := c.ns.TID()
	if err != nil {
		return err
	}
	if err := c.on.ns.Do(func() error {
		return add(link.SubInterface{Name: born, Parent: wireName, TID: tid})
	}); err != nil {
		return err
	}
	return c.ns.Do(func() error { return link.Rename(born, inside) })
}

func (s *site) reflects() bool {
	spec := s.path.Spec
	return spec.Mode == mode.MacvlanVEPA && spec.From == mode.FromContainer && !spec.To.Outside()
}

// reflect makes machine B the switch that vepa needs, a bridge with reflective relay (IEEE
// 802.1Qbg).
func (s *site) reflect() error {
	s.path.Facts["switch"] = "machine B is a bridge that reflects frames"
	if err := s.outerBridge(s.b); err != nil {
		return err
	}
	return s.b.ns.Do(func() error { return link.SetHairpin(wireName) })
}

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
