package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/path/local"
)

// Ports inside containers.
const (
	serverPort = 5201
	secondPort = 5301
)

var (
	loopback  = netip.MustParseAddr("127.0.0.1")
	loopback6 = netip.IPv6Loopback()
	anyAddr   = netip.IPv4Unspecified()
)

// site is a path while it is built.
type site struct {
	ctx    context.Context // of the build
	engine *engine
	path   *path.Path
	prefix string // of names
	made   int    // names

	network *bridgeNet
	bridges []string // of this machine that hops or guards are
	servers []*box
	clients []*box
	dial    []netip.AddrPort // each server
	// attach gives a container its device and address where Docker does not; nil
	// where it does.
	attach func(*box) error
}

func (e *engine) newSite(ctx context.Context, p *path.Path) (*site, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	p.Facts["engine"] = e.version()
	if f := e.info.FirewallBackend; f != nil {
		p.Facts["firewall"] = f.Driver
	}
	return &site{ctx: ctx, engine: e, path: p, prefix: fmt.Sprintf("toll-%s-%d", e.id, e.count)}, nil
}

// name is a new name.
func (s *site) name(what string) string {
	s.made++
	return s.prefix + "-" + what + strconv.Itoa(s.made)
}

// machine is the place of processes outside every container.
func (s *site) machine() path.Place { return &machine{thisMachine, s.engine.ns} }

// label is what the i-th of n containers is called.
func label(role string, i, n int) string {
	if n > 1 {
		return fmt.Sprintf("%s container %d", role, i+1)
	}
	return role + " container"
}

// addServers makes the servers' containers; clients dial them at their
// addresses, unless the mode says otherwise.
func (s *site) addServers(o func(i int) (order, error)) (err error) {
	n, _ := s.path.Spec.Count()
	orders := make([]order, n)
	for i := range orders {
		if orders[i], err = o(i); err != nil {
			return err
		}
		orders[i].what, orders[i].role, orders[i].udp = label("server", i, n), "server", s.path.Spec.UDP
	}
	if s.servers, err = s.addAttached(orders); err != nil {
		return err
	}
	for _, b := range s.servers {
		s.listen(contained{b}, serverPort, netip.AddrPortFrom(b.addr, serverPort))
	}
	return nil
}

// addClients makes the clients' containers.
func (s *site) addClients(o func(i int) order) (err error) {
	_, m := s.path.Spec.Count()
	orders := make([]order, m)
	for i := range orders {
		orders[i] = o(i)
		orders[i].what, orders[i].role, orders[i].udp = label("client", i, m), "client", s.path.Spec.UDP
	}
	if s.clients, err = s.addAttached(orders); err != nil {
		return err
	}
	for _, b := range s.clients {
		s.placeClient(contained{b})
	}
	return nil
}

// addAttached makes containers and their devices.
func (s *site) addAttached(orders []order) ([]*box, error) {
	boxes, err := s.addBoxes(orders)
	if err != nil || s.attach == nil {
		return boxes, err
	}
	for _, b := range boxes {
		if err := s.attach(b); err != nil {
			return nil, fmt.Errorf("%s: %w", b.what, err)
		}
	}
	return boxes, nil
}

// listen places the next server, which listens on a port there and is dialled
// so.
func (s *site) listen(place path.Place, port uint16, dial netip.AddrPort) {
	s.path.Servers = append(s.path.Servers, path.Server{Place: place, Listen: netip.AddrPortFrom(anyAddr, port)})
	s.dial = append(s.dial, dial)
}

func (s *site) placeClient(place path.Place) {
	n, _ := s.path.Spec.Count()
	s.path.Clients = append(s.path.Clients, path.Client{Place: place, Server: len(s.path.Clients) % n})
}

// placeClients places all clients outside every container.
func (s *site) placeClients() {
	_, m := s.path.Spec.Count()
	for range m {
		s.placeClient(s.machine())
	}
}

// connect tells the clients whom to dial.
func (s *site) connect() {
	for i, c := range s.path.Clients {
		s.path.Clients[i].Dial = s.dial[c.Server]
	}
	if s.path.Spec.Second && s.path.Second == 0 {
		s.path.Second = secondPort
	}
}

// serverHops are the servers' own devices.
func (s *site) serverHops(kind mode.HopKind) []path.Hop {
	var out []path.Hop
	for i, b := range s.servers {
		h := b.hop(kind, true)
		h.Clients = s.path.Spec.TalkTo(i)
		out = append(out, h)
	}
	return out
}

// clientHops are the clients' own devices.
func (s *site) clientHops(kind mode.HopKind) []path.Hop {
	var out []path.Hop
	for i, b := range s.clients {
		h := b.hop(kind, false)
		h.Clients = s.path.Spec.Alone(i)
		out = append(out, h)
	}
	return out
}

// freePort is a port of this machine that nobody has at the moment and no path of
// this run was given.
func (s *site) freePort(at netip.Addr) (uint16, error) {
	const tries = 1000
	for range tries {
		port, err := s.anyPort(at)
		if err != nil {
			return 0, err
		}
		if s.engine.choose(port) {
			return port, nil
		}
	}
	return 0, errors.New("find a free port: there are hardly any")
}

// choose reports whether the port was not chosen before.
func (e *engine) choose(port uint16) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.chosen[port] {
		return false
	}
	if e.chosen == nil {
		e.chosen = map[uint16]bool{}
	}
	e.chosen[port] = true
	return true
}

// anyPort is a port of this machine that nobody has at the moment.
func (s *site) anyPort(at netip.Addr) (port uint16, err error) {
	addr := netip.AddrPortFrom(at, 0).String()
	err = s.engine.ns.Do(func() error {
		if s.path.Spec.UDP {
			c, err := net.ListenPacket("udp", addr)
			if err != nil {
				return err
			}
			port = uint16(c.LocalAddr().(*net.UDPAddr).Port)
			return c.Close()
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		port = uint16(l.Addr().(*net.TCPAddr).Port)
		return l.Close()
	})
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return port, nil
}

// ownAddress is the machine's own address: the one from which it would reach
// others.
func ownAddress(ns *netns.NS) (a netip.Addr, err error) {
	err = ns.Do(func() error {
		const elsewhere = "192.0.2.1:9" // TEST-NET-1; connecting UDP sends nothing
		c, err := net.Dial("udp4", elsewhere)
		if err != nil {
			return err
		}
		a = c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
		return c.Close()
	})
	if err != nil || a.IsLoopback() {
		return a, &path.UnsupportedError{Missing: "this machine has no address by which others would reach it: there is no default route",
			Remedy: "--to loopback", Err: err}
	}
	return a, nil
}

// describe notes what a result must say of the path's devices and settings.
func (s *site) describe() error {
	type spot struct {
		ns    *netns.NS
		where string
		names []string // nil: all
	}
	spots := []spot{{s.engine.ns, thisMachine, []string{"lo"}}}
	if s.network != nil && s.network.bridge != "" && s.network.where == "" && !s.engine.rootless { // which has it elsewhere
		spots[0].names = append(spots[0].names, s.network.bridge)
	}
	for _, some := range [][]*box{s.servers, s.clients} {
		if len(some) == 0 || some[0].shares { // the machine's devices
			continue
		}
		spots = append(spots, spot{some[0].ns, some[0].what, nil}) // the others are like the first
		if b := some[0]; b.port != "" && b.portNS == s.engine.ns {
			spots[0].names = append(spots[0].names, b.port)
		}
	}
	if s.network != nil && s.network.where != "" {
		spots = append(spots, spot{s.servers[0].portNS, s.network.where, nil})
	}
	for _, at := range spots {
		links, err := local.Links(at.ns, at.where, at.names...)
		if err != nil {
			return err
		}
		s.path.Links = append(s.path.Links, links...)
	}
	return s.engine.ns.Do(func() error {
		for _, key := range []string{"net.ipv4.tcp_congestion_control", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
			"net.ipv4.ip_forward", bridgeNF} {
			if v, err := sysctl.Get(key); err == nil {
				s.path.Sysctls[key] = v
			}
		}
		return nil
	})
}

const bridgeNF = "net.bridge.bridge-nf-call-iptables"

var errNoAddress = errors.New("Docker gave the container no IPv4 address")
