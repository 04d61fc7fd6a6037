package lab

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/undo"
)

// The lab's addresses. The wire uses the range that RFC 2544 sets aside for
// benchmarks; the bridges use ranges that Docker uses.
var (
	wireA       = netip.MustParsePrefix("198.18.0.1/24")
	wireB       = netip.MustParsePrefix("198.18.0.2/24")
	subnet      = netip.MustParsePrefix("172.30.0.0/16")
	gateway     = netip.MustParsePrefix("172.30.0.1/16")
	serverAddr  = netip.MustParsePrefix("172.30.0.2/16")
	clientAddr  = netip.MustParsePrefix("172.30.0.3/16")
	defaultNet  = netip.MustParsePrefix("172.17.0.0/16")
	defaultGate = netip.MustParsePrefix("172.17.0.1/16")
	loopback    = netip.MustParseAddr("127.0.0.1")
	loopback6   = netip.MustParseAddr("::1")
	anyAddr     = netip.MustParseAddr("0.0.0.0")
)

const (
	serverPort    = 5201 // where the server listens, in its container
	publishedPort = 8080

	wireName = "eth0" // the machine's end of the wire
	bridgeA  = "br-toll"
	docker0  = "docker0"

	bridgeNF  = "net.bridge.bridge-nf-call-iptables"
	ipForward = "net.ipv4.ip_forward"
)

// machine is a host: a network namespace with its end of the wire.
type machine struct {
	name string
	ns   *netns.NS
}

// container is a network namespace on a machine and its veth pair.
type container struct {
	name string
	ns   *netns.NS
	on   *machine
	port string // the veth's end on the machine
	addr netip.Prefix
}

// site is what one path is built on.
type site struct {
	lab   *Lab
	undo  *undo.Stack
	a, b  *machine
	boxes []*container
}

// newSite makes two machines and the wire between them.
func newSite(l *Lab, u *undo.Stack) (*site, error) {
	s := &site{lab: l, undo: u}
	for _, m := range []struct {
		to   **machine
		name string
	}{{&s.a, "machine A"}, {&s.b, "machine B"}} {
		ns, err := s.namespace(m.name)
		if err != nil {
			return nil, err
		}
		*m.to = &machine{name: m.name, ns: ns}
	}
	return s, s.layWire()
}

// namespace makes a network namespace with its loopback device up.
func (s *site) namespace(name string) (*netns.NS, error) {
	ns, err := netns.New()
	if err != nil {
		return nil, explainNamespace(err)
	}
	s.undo.Push("close "+name, ns.Close)
	err = ns.Do(func() error {
		if err := s.lab.setCongestion(); err != nil {
			return err
		}
		return link.Up("lo")
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ns, nil
}

func (s *site) layWire() error {
	tid, err := s.b.ns.TID()
	if err != nil {
		return err
	}
	err = s.a.ns.Do(func() error {
		if err := link.AddVeth(wireName, wireName, tid); err != nil {
			return err
		}
		return addressed(wireName, wireA)
	})
	if err == nil {
		err = s.b.ns.Do(func() error { return addressed(wireName, wireB) })
	}
	if err != nil {
		return fmt.Errorf("lay the wire: %w", err)
	}
	return nil
}

// addressed gives a device its address and sets it up.
func addressed(name string, addr netip.Prefix) error {
	if err := link.AddAddr(name, addr); err != nil {
		return err
	}
	return link.Up(name)
}

// addContainer makes a container whose veth is a port of the bridge.
func (s *site) addContainer(name, port string, addr netip.Prefix) (*container, error) {
	ns, err := s.namespace(name)
	if err != nil {
		return nil, err
	}
	c := &container{name: name, ns: ns, on: s.a, port: port, addr: addr}
	tid, err := ns.TID()
	if err != nil {
		return nil, err
	}
	err = s.a.ns.Do(func() error {
		if err := link.AddVeth(port, "eth0", tid); err != nil {
			return err
		}
		if err := link.SetMaster(port, bridgeA); err != nil {
			return err
		}
		return link.Up(port)
	})
	if err == nil {
		err = ns.Do(func() error {
			if err := addressed("eth0", addr); err != nil {
				return err
			}
			return link.AddDefaultRoute(gateway.Addr())
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.boxes = append(s.boxes, c)
	return c, nil
}

// describe notes what a result must say of the path's devices and settings.
func (s *site) describe(p *path.Path) error {
	type spot struct {
		ns    *netns.NS
		where string
	}
	spots := []spot{{s.a.ns, s.a.name}}
	if p.Spec.From == mode.FromRemote {
		spots = append(spots, spot{s.b.ns, s.b.name})
	}
	for _, c := range s.boxes {
		spots = append(spots, spot{c.ns, c.name})
	}
	for _, at := range spots {
		err := at.ns.Do(func() error {
			names, err := link.Names()
			if err != nil {
				return err
			}
			for _, n := range names {
				info, err := link.Describe(n)
				if err != nil {
					return err
				}
				p.Links = append(p.Links, sample.Link{Name: n, Where: at.where,
					Kind: info.Kind, MTU: info.MTU, Qdisc: info.Qdisc, Offloads: info.Offloads})
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("describe %s: %w", at.where, err)
		}
	}
	return s.a.ns.Do(func() error {
		for _, key := range []string{"net.ipv4.tcp_congestion_control", "net.ipv4.tcp_rmem",
			"net.ipv4.tcp_wmem", ipForward, bridgeNF} {
			if v, err := sysctl.Get(key); err == nil {
				p.Sysctls[key] = v
			}
		}
		return nil
	})
}

// counters reads a device. forwardRx says that what the device receives is
// on its way to the server.
func counters(ns *netns.NS, dev string, forwardRx bool) func() (sample.Counters, error) {
	return func() (out sample.Counters, err error) {
		err = ns.Do(func() error {
			c, err := link.Stats(dev)
			if forwardRx {
				out = sample.Counters{ForwardBytes: c.RxBytes, ForwardPackets: c.RxPackets,
					BackwardBytes: c.TxBytes, BackwardPackets: c.TxPackets}
			} else {
				out = sample.Counters{ForwardBytes: c.TxBytes, ForwardPackets: c.TxPackets,
					BackwardBytes: c.RxBytes, BackwardPackets: c.RxPackets}
			}
			return err
		})
		return out, err
	}
}

// loHop is a namespace's loopback device, which counts both directions as
// one.
func loHop(ns *netns.NS, where string) path.Hop {
	read := counters(ns, "lo", true)
	return path.Hop{Kind: mode.HopLoopback, Name: "lo", Where: where, Expect: path.CarriesBoth,
		Read: func() (sample.Counters, error) {
			c, err := read()
			c.BackwardBytes, c.BackwardPackets = 0, 0
			return c, err
		}}
}

// wireHop is A's end of the wire.
func (s *site) wireHop() path.Hop {
	return path.Hop{Kind: mode.HopWire, Name: wireName, Where: s.a.name, Read: counters(s.a.ns, wireName, true)}
}

// vethHop is the container's own end of its veth pair.
func (c *container) vethHop(server bool) path.Hop {
	return path.Hop{Kind: mode.HopVeth, Name: c.port + "⇄eth0", Where: c.name,
		Read: counters(c.ns, "eth0", server)}
}

// bridgeHop is the bridge as the machine's own device: it counts what goes
// between the machine's stack and the containers.
func (s *site) bridgeHop(toServer bool) path.Hop {
	return path.Hop{Kind: mode.HopBridge, Name: bridgeA, Where: s.a.name, Read: counters(s.a.ns, bridgeA, !toServer)}
}

// switchedHop is the bridge as a switch between two containers: what it sent
// out of the server's port and out of the client's. (A bridge's own counters
// do not count frames that it only forwards.)
func (s *site) switchedHop(client, server *container) path.Hop {
	toServer, toClient := counters(s.a.ns, server.port, false), counters(s.a.ns, client.port, false)
	return path.Hop{Kind: mode.HopBridge, Name: bridgeA + " ports", Where: s.a.name,
		Read: func() (sample.Counters, error) {
			f, err := toServer()
			if err != nil {
				return f, err
			}
			b, err := toClient()
			return sample.Counters{ForwardBytes: f.ForwardBytes, ForwardPackets: f.ForwardPackets,
				BackwardBytes: b.ForwardBytes, BackwardPackets: b.ForwardPackets}, err
		}}
}

// in is the place of a process on the machine itself.
func (s *site) in(m *machine) path.Place {
	return &place{name: m.name, ns: m.ns, machine: m}
}

// inside is the place of a process in a container: the namespace ns, and
// process, mount, host name and IPC namespaces of its own.
func (s *site) inside(ns *netns.NS, name string) path.Place {
	return &place{name: name, ns: ns, machine: s.a,
		clone: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC}
}
