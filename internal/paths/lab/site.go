package lab

import (
	"fmt"
	"net/netip"
	"os/exec"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

type network struct {
	bridge  string
	subnet  netip.Prefix
	subnet6 netip.Prefix
	first   int  // the first container's number in the network
	noExit  bool // the network has no gateway
}

// The wire's ranges are those for benchmarks (RFC 2544, RFC 5180). The other IPv4 ranges are
// Docker's, the other IPv6 ranges unique local ones.
var (
	outer = network{bridge: "br1", subnet: netip.MustParsePrefix("198.18.0.0/24"),
		subnet6: netip.MustParsePrefix("2001:2:0:18::/64"), first: firstOuter, noExit: true}

	tollNet   = dockerNetwork("br-toll", "172.30.0.0/16", "fd54:6f6c:6c:30::/64")
	secondNet = dockerNetwork("br-toll2", "172.31.0.0/16", "fd54:6f6c:6c:31::/64")
	remoteNet = dockerNetwork("br-remote", "172.29.0.0/16", "fd54:6f6c:6c:29::/64")
	docker0   = dockerNetwork("docker0", "172.17.0.0/16", "fd54:6f6c:6c:17::/64")
	// gwbridge is the way out of overlay networks.
	gwbridge = dockerNetwork("docker_gwbridge", "172.18.0.0/16", "fd54:6f6c:6c:18::/64")
)

func dockerNetwork(bridge, subnet, subnet6 string) network {
	return network{bridge: bridge, subnet: netip.MustParsePrefix(subnet),
		subnet6: netip.MustParsePrefix(subnet6), first: firstDocker}
}

func (n network) nth(i int) netip.Prefix {
	a := n.subnet.Addr().As4()
	a[3] = byte(i)
	return netip.PrefixFrom(netip.AddrFrom4(a), n.subnet.Bits())
}

func (n network) nth6(i int) netip.Prefix {
	a := n.subnet6.Addr().As16()
	a[15] = byte(i)
	return netip.PrefixFrom(netip.AddrFrom16(a), n.subnet6.Bits())
}

func (n network) of6(at seat) netip.Prefix { return n.nth6(n.first + at.number) }

// like6 returns the IPv6 address of the container with the IPv4 address a.
func (n network) like6(a netip.Addr) netip.Addr {
	four, six := a.As4(), n.subnet6.Addr().As16()
	six[14], six[15] = four[2], four[3]
	return netip.AddrFrom16(six)
}

func (n network) of(at seat) netip.Prefix { return n.nth(n.first + at.number) }

// gateway returns the zero Prefix if the network has no gateway.
func (n network) gateway() netip.Prefix {
	if n.noExit {
		return netip.Prefix{}
	}
	return n.nth(1)
}

func (n network) gateway6() netip.Prefix {
	if n.noExit {
		return netip.Prefix{}
	}
	return n.nth6(1)
}

// Hosts' numbers in their networks. On the wire, A is 1 and B is 2.
const (
	machineA = 1
	machineB = 2

	firstDocker = 2  // after the gateway
	firstOuter  = 10 // containers on the wire
)

var (
	loopback  = netip.MustParseAddr("127.0.0.1")
	loopback6 = netip.MustParseAddr("::1")
	anyAddr   = netip.MustParseAddr("0.0.0.0")
	anyPrefix = netip.PrefixFrom(anyAddr, 0)

	anyPrefix6 = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	none       netip.Addr
)

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

const (
	serverPort    = recipe.ServerPort
	publishedPort = 8080              // the first server's; the other servers' follow
	secondPort    = recipe.SecondPort // has the same number in the container

	wireName = "eth0"
	inside   = "eth0"

	bridgeNF  = "net.bridge.bridge-nf-call-iptables"
	ipForward = "net.ipv4.ip_forward"
)

type space struct {
	*netns.NS
	before func() error // nil outside tests
}

func (s *space) step() error {
	if s.before == nil {
		return nil
	}
	return s.before()
}

func (s *space) Do(f func() error) error {
	if err := s.step(); err != nil {
		return err
	}
	return s.NS.Do(f)
}

func (s *space) Start(cmd *exec.Cmd) error {
	if err := s.step(); err != nil {
		return err
	}
	return s.NS.Start(cmd)
}

type hostMachine struct {
	name  string
	ns    *space
	addr  netip.Prefix
	addr6 netip.Prefix // valid if the path uses IPv6
	rules []nft.Chain  // that Docker wrote here
}

// Addr returns the address of the path's family.
func (m *hostMachine) Addr() netip.Addr {
	if m.addr6.IsValid() {
		return m.addr6.Addr()
	}
	return m.addr.Addr()
}

type container struct {
	site   *site
	name   string
	ns     *space
	on     *hostMachine
	kind   mode.HopKind
	device string // that the path takes; "": inside
	port   string
	portNS *space
	addr   netip.Prefix
	addr6  netip.Prefix // valid if the path uses IPv6 on this network
}

func (c *container) Place() path.Place { return in(c) }

// Addr returns the address of the path's family.
func (c *container) Addr() netip.Addr {
	if c.addr6.IsValid() {
		return c.addr6.Addr()
	}
	return c.addr.Addr()
}

type site struct {
	lab    *Lab
	path   *path.Path
	a, b   *hostMachine
	engine *hostMachine // where Docker runs: A, or the network that RootlessKit made there
	home   network      // the servers'
	away   network      // the clients', if it is another one
	beside bool
	// preserved means that no rule rewrites the clients' addresses, although there is one.
	preserved bool
	boxes     []*container
	recipe.Ends[*container]
	more  []spot
	tuned local.Tuned
}

type spot struct {
	ns    *space
	where string
}

func newSite(l *Lab, p *path.Path) (*site, error) {
	s := &site{lab: l, path: p, home: tollNet, beside: recipes[p.Spec.Mode].beside,
		Ends: recipe.NewEnds[*container](p), tuned: local.Tuned{}}
	for _, m := range []struct {
		to   **hostMachine
		name string
		host int
	}{{&s.a, "machine A", machineA}, {&s.b, "machine B", machineB}} {
		ns, err := s.namespace(m.name)
		if err != nil {
			return nil, err
		}
		*m.to = &hostMachine{name: m.name, ns: ns, addr: outer.nth(m.host)}
		if p.Spec.To.Six() {
			(*m.to).addr6 = outer.nth6(m.host)
		}
	}
	s.engine = s.a
	return s, s.layWire()
}

func (s *site) namespace(name string) (*space, error) {
	ns, err := netns.New()
	if err != nil {
		return nil, explainNamespace(err)
	}
	s.path.Undo.Push("close "+name, ns.Close)
	out := &space{NS: ns, before: s.lab.test.before}
	err = out.Do(func() error {
		if err := s.lab.setCongestion(); err != nil {
			return err
		}
		if recipe.Dual(s.path.Spec) {
			if err := settle(); err != nil {
				return err
			}
		}
		return link.Up("lo")
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

func addressed(name string, addr netip.Prefix) error {
	if err := link.AddAddr(name, addr); err != nil {
		return err
	}
	return link.Up(name)
}

func (s *site) box(on *hostMachine, name string) (*container, error) {
	ns, err := s.namespace(name)
	if err != nil {
		return nil, err
	}
	c := &container{site: s, name: name, ns: ns, on: on}
	s.boxes = append(s.boxes, c)
	return c, nil
}

func (c *container) plug(port string, at *space) error {
	c.kind, c.port, c.portNS = mode.HopVeth, port, at
	tid, err := c.ns.TID()
	if err != nil {
		return err
	}
	return at.Do(func() error {
		if err := link.AddVeth(port, inside, tid); err != nil {
			return err
		}
		return link.Up(port)
	})
}

func (c *container) setMTU(mtu int) error {
	if err := c.portNS.Do(func() error { return link.SetMTU(c.port, mtu) }); err != nil {
		return err
	}
	return c.ns.Do(func() error { return link.SetMTU(inside, mtu) })
}

func (c *container) address(addr netip.Prefix, gateway netip.Addr) error {
	c.addr = addr
	err := c.ns.Do(func() error {
		if err := discovery(c.site.path.Spec); err != nil {
			return err
		}
		if err := addressed(inside, addr); err != nil || !gateway.IsValid() {
			return err
		}
		return link.AddDefaultRoute(gateway)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

func (c *container) leaveBy(device string) error {
	return c.ns.Do(func() error {
		if err := link.AddDeviceRoute(anyPrefix, device); err != nil || !c.addr6.IsValid() {
			return err
		}
		return link.AddDeviceRoute(anyPrefix6, device)
	})
}

func (s *site) bridged(on *hostMachine, n network, at seat) (*container, error) {
	c, err := s.box(on, at.name)
	if err != nil {
		return nil, err
	}
	if err := c.plug(at.veth(), on.ns); err != nil {
		return nil, fmt.Errorf("%s: %w", at.name, err)
	}
	if err := on.ns.Do(func() error { return link.SetMaster(c.port, n.bridge) }); err != nil {
		return nil, fmt.Errorf("%s: %w", at.name, err)
	}
	if err := c.address(n.of(at), n.gateway().Addr()); err != nil {
		return nil, err
	}
	if err := c.alsoSix(n.of6(at), n.gateway6().Addr()); err != nil || n == docker0 || n == outer ||
		n == podman1 || n.ofPods() {
		return c, err
	}
	return c, c.resolves()
}

func (s *site) describe() error {
	spots := []local.Described{{Space: s.a.ns, Where: s.a.name}}
	if from := s.path.Spec.From; from == mode.FromRemote || from == mode.FromRemoteContainer ||
		s.path.Spec.To.Outside() {
		spots = append(spots, local.Described{Space: s.b.ns, Where: s.b.name})
	}
	for _, c := range s.boxes {
		if len(s.Servers) > 1 && slices.Contains(s.Servers[1:], c) ||
			len(s.Clients) > 1 && slices.Contains(s.Clients[1:], c) {
			continue // all servers have the first one's settings, and all clients
		}
		spots = append(spots, local.Described{Space: c.ns, Where: c.name})
	}
	for _, at := range s.more {
		spots = append(spots, local.Described{Space: at.ns, Where: at.where})
	}
	return local.Describe(s.path, s.a.ns, spots)
}

func (s *site) namespaces() ([]path.Namespace, error) {
	var spots []local.Described
	for _, at := range append([]spot{{s.a.ns, s.a.name}, {s.b.ns, s.b.name}}, s.more...) {
		spots = append(spots, local.Described{Space: at.ns, Where: at.where})
	}
	for _, c := range s.boxes {
		spots = append(spots, local.Described{Space: c.ns, Where: c.name})
	}
	return local.Namespaces(spots)
}

func on(m *hostMachine) path.Place {
	return &place{name: m.name, ns: m.ns}
}

func in(c *container) path.Place { return contained(c.ns, c.name) }

func contained(ns *space, name string) *place {
	return &place{name: name, ns: ns,
		clone: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC}
}
