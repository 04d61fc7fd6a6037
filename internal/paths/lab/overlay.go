package lab

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// As in Docker Engine 28.5.2 (libnetwork/drivers/overlay), each machine has a namespace with a
// bridge, the VXLAN device and one end of each container's veth pair. The VXLAN device is made on
// the machine and then moved, so that its outer packets are the machine's. Each remote container
// has one permanent neighbour entry and one permanent forwarding entry.
//
// Containers have their second device, on docker_gwbridge, only on paths to the outside: other
// loads do not use it.
//
// Docker's driver supports only IPv4 (up to moby at b985e23). On a path over IPv6 a container has
// an address and entries of each family, and the tunnel's own packets are IPv4.
const (
	overlayBridge = "br0"
	overlayVXLAN  = "vxlan0"

	vxlanPort  = 4789
	ingressVNI = 4096 // Swarm's first, of the network ingress
	vxlanVNI   = 4097 // the first of users' networks

	vxlanOverhead = 50
	espOverhead   = 26 // bytes
)

type overlayNet struct {
	network
	vni int
	mtu int
}

type sandbox struct {
	on  *hostMachine
	ns  *space
	net overlayNet
}

func (b *sandbox) where() string { return "overlay on " + b.on.name }

func (s *site) overlay() error {
	p := s.path
	encrypted := p.Spec.Mode == mode.OverlayEncrypted
	mtu := defaultMTU - vxlanOverhead
	if encrypted {
		mtu -= espOverhead
	}
	gateway := dockerNet{network: gwbridge}
	if p.Spec.To.Outside() {
		for _, at := range s.clientSeats(s.a) {
			gateway.containers = append(gateway.containers, gwbridge.of(at))
		}
	}
	d := userNetwork(gateway)
	d.encrypted = encrypted
	n := overlayNet{tollNet, vxlanVNI, mtu}
	if p.Spec.To.Six() {
		p.Facts["overlay"] = "IPv6 between the containers, which Docker's overlay networks lack; the tunnel between the machines is over IPv4"
	}
	a, err := s.sandbox(s.a, d, n)
	if err != nil {
		return err
	}
	if p.Spec.To.Outside() {
		return s.outOfOverlay(a)
	}
	if err := s.addServers(a.attach(s)); err != nil {
		return err
	}
	p.Guards = []path.Hop{s.noNAT(), local.Unused(s.loHop(s.a.ns, s.a.name))}
	if p.Spec.From == mode.FromContainer {
		if err := s.addClients(s.a, a.attach(s)); err != nil {
			return err
		}
		s.Give(mode.HopBridge, s.overlaySwitch(a, ports(s.Clients), ports(s.Servers)))
		p.Guards = append(p.Guards, local.Unused(s.vxlanHop(a, true)))
		return nil
	}
	return s.acrossOverlay(a, d)
}

// acrossOverlay puts the clients on the other machine.
func (s *site) acrossOverlay(a *sandbox, d daemon) error {
	b, err := s.sandbox(s.b, d, a.net)
	if err != nil {
		return err
	}
	if err := s.addClients(s.b, b.attach(s)); err != nil {
		return err
	}
	for _, c := range s.Clients {
		if err := a.knows(c); err != nil {
			return err
		}
	}
	for _, c := range s.Servers {
		if err := b.knows(c); err != nil {
			return err
		}
	}
	if d.encrypted {
		if err := s.encrypt(); err != nil {
			return err
		}
	}
	tunnel := []string{overlayVXLAN}
	s.GiveBoth(mode.HopBridge, s.overlaySwitch(b, ports(s.Clients), tunnel),
		s.overlaySwitch(a, tunnel, ports(s.Servers)))
	s.GiveBoth(mode.HopVXLAN, s.vxlanHop(b, false), s.vxlanHop(a, true))
	return nil
}

func (s *site) outOfOverlay(a *sandbox) error {
	s.serveOutside()
	p, join := s.path, a.attach(s)
	p.Guards = []path.Hop{local.Unused(s.loHop(s.a.ns, s.a.name)),
		local.Unused(s.vxlanHop(a, false))}
	err := s.addClients(s.a, func(at seat) (*container, error) {
		c, err := join(at)
		if err != nil {
			return nil, err
		}
		p.Guards = append(p.Guards, local.Unused(c.Hop(false)))
		port := "gw-" + at.end
		if err := c.leaveByGateway(port, gwbridge.of(at)); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		c.device, c.port, c.portNS = gatewayLeg, port, s.a.ns
		return c, nil
	})
	s.away = gwbridge
	return err
}

// leaveByGateway gives a container on an overlay network its device on docker_gwbridge.
func (c *container) leaveByGateway(port string, addr netip.Prefix) error {
	tid, err := c.ns.TID()
	if err != nil {
		return err
	}
	err = c.on.ns.Do(func() error {
		if err := link.AddVeth(port, gatewayLeg, tid); err != nil {
			return err
		}
		if err := link.SetMaster(port, gwbridge.bridge); err != nil {
			return err
		}
		return link.Up(port)
	})
	if err != nil {
		return err
	}
	return c.ns.Do(func() error {
		if err := addressed(gatewayLeg, addr); err != nil {
			return err
		}
		return link.AddDefaultRoute(gwbridge.gateway().Addr())
	})
}

func (s *site) overlaySwitch(b *sandbox, clientPorts, serverPorts []string) path.Hop {
	return s.switchedHop(b.ns, b.where(), overlayBridge, clientPorts, serverPorts)
}

func (s *site) sandbox(m *hostMachine, d daemon, n overlayNet) (*sandbox, error) {
	if err := s.install(m, d); err != nil {
		return nil, err
	}
	b := &sandbox{on: m, net: n}
	ns, err := s.namespace(b.where())
	if err != nil {
		return nil, err
	}
	b.ns = ns
	s.more = append(s.more, spot{ns, b.where()})
	tid, err := ns.TID()
	if err != nil {
		return nil, err
	}
	err = ns.Do(func() error {
		if err := link.AddBridge(overlayBridge); err != nil {
			return err
		}
		return link.AddAddr(overlayBridge, n.gateway())
	})
	if err != nil {
		return nil, err
	}
	err = m.ns.Do(func() error {
		v := link.VXLAN{Name: overlayVXLAN, VNI: n.vni, Port: vxlanPort, MTU: n.mtu,
			Proxy: true, L2Miss: true, L3Miss: true, Learning: true, UDPCsum: true}
		if err := link.AddVXLAN(v); err != nil {
			return err
		}
		return link.MoveTo(overlayVXLAN, tid)
	})
	if err != nil {
		return nil, err
	}
	return b, ns.Do(func() error {
		if err := link.SetMaster(overlayVXLAN, overlayBridge); err != nil {
			return err
		}
		return link.Up(overlayVXLAN)
	})
}

func (b *sandbox) attach(s *site) func(seat) (*container, error) {
	return func(at seat) (*container, error) {
		c, err := b.join(s, at.name, at.veth(), b.net.of(at))
		if err != nil {
			return nil, err
		}
		if err := c.alsoSix(b.net.of6(at), none); err != nil {
			return nil, err
		}
		return c, c.resolves()
	}
}

func (b *sandbox) join(s *site, name, port string, addr netip.Prefix) (*container, error) {
	c, err := s.box(b.on, name)
	if err != nil {
		return nil, err
	}
	if err := c.plug(port, b.ns); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := b.ns.Do(func() error { return link.SetMaster(c.port, overlayBridge) }); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := c.setMTU(b.net.mtu); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := c.ns.Do(func() error {
		return link.SetAddress(inside, dockerMAC(addr.Addr()))
	}); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, c.address(addr, none)
}

func dockerMAC(a netip.Addr) net.HardwareAddr {
	return append(net.HardwareAddr{0x02, 0x42}, a.AsSlice()...)
}

func (b *sandbox) knows(c *container) error {
	mac := dockerMAC(c.addr.Addr())
	return b.ns.Do(func() error {
		if err := link.AddNeighbour(overlayVXLAN, c.addr.Addr(), mac); err != nil {
			return err
		}
		if c.addr6.IsValid() {
			if err := link.AddNeighbour(overlayVXLAN, c.addr6.Addr(), mac); err != nil {
				return err
			}
		}
		return link.AddForwarding(overlayVXLAN, mac, c.on.addr.Addr())
	})
}

func (s *site) vxlanHop(b *sandbox, toServer bool) path.Hop {
	return s.madeOf(path.Hop{Kind: mode.HopVXLAN, Name: overlayVXLAN, Where: b.where(),
		Read: local.Device(b.ns, overlayVXLAN, toServer)}, device{Space: b.ns, Name: overlayVXLAN})
}

func tryVXLAN() error {
	v := link.VXLAN{Name: "try-vxlan", VNI: vxlanVNI, Port: vxlanPort, Proxy: true}
	return local.MissingDevice(link.AddVXLAN(v), "vxlan", "CONFIG_VXLAN")
}
