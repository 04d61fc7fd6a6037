package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

const (
	serverPort = recipe.ServerPort
	secondPort = recipe.SecondPort
)

var (
	loopback  = netip.MustParseAddr("127.0.0.1")
	loopback6 = netip.IPv6Loopback()
	anyAddr   = netip.IPv4Unspecified()
)

// site is a path that is being built. ctx is the build's context; the path's counters and clean-up
// do not use it.
type site struct {
	ctx    context.Context
	engine *engine
	at     spot // where processes outside containers run
	spot   spot // where the path's bridges are, if it has any
	path   *path.Path
	prefix string
	made   int // the number of names given out

	network *bridgeNet // the servers'
	away    *bridgeNet // the clients', if it is another one; or nil
	bridges []string   // the machine's bridges that are hops or guards
	kind    mode.HopKind
	tuned   local.Tuned
	recipe.Ends[*box]
	// attach gives a container its device; nil: Docker does.
	attach func(*box) error
}

func (e *engine) newSite(ctx context.Context, p *path.Path) (*site, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	p.Facts["engine"] = e.Version()
	if e.Podman != nil {
		p.Facts["network backend"] = e.Podman.Backend()
	}
	if e.Podman != nil && e.rootless {
		p.Facts["engine"] = "rootless " + e.Version()
	}
	if f := e.Info.FirewallBackend; f != nil {
		p.Facts["firewall"] = f.Driver
	}
	if set := dockerapi.UserlandProxy(e.Info); set != "" {
		p.Facts["userland-proxy"] = set
	}
	if e.kit != nil {
		p.Facts["engine"] = "rootless " + e.Version()
		p.Facts["rootless"] = e.described()
	}
	at := e.spot
	if e.Podman != nil {
		at = e.machine // changed once the mode has bridges
	}
	return &site{ctx: ctx, engine: e, at: at, spot: at, path: p, Ends: recipe.NewEnds[*box](p), tuned: local.Tuned{},
		kind: mode.HopVeth, prefix: fmt.Sprintf("toll-%s-%d", e.ID, e.count)}, nil
}

func (s *site) name(what string) string {
	s.made++
	return s.prefix + "-" + what + strconv.Itoa(s.made)
}

func (s *site) machine() path.Place { return local.Place{Space: s.at.ns, Named: s.at.name} }

// addServers adds the servers' containers. Clients dial their addresses unless the mode sets
// others.
func (s *site) addServers(o func(i int) (wanted, error)) error {
	n, _ := s.path.Spec.Count()
	boxes, err := s.addAttached("server", n, o)
	for _, b := range boxes {
		s.AddServer(b)
	}
	return err
}

func (s *site) addClients(o func(i int) wanted) error {
	_, m := s.path.Spec.Count()
	boxes, err := s.addAttached("client", m, func(i int) (wanted, error) { return o(i), nil })
	for _, b := range boxes {
		s.AddClient(b)
	}
	return err
}

func (s *site) addAttached(role string, n int, o func(i int) (wanted, error)) ([]*box, error) {
	wants := make([]wanted, n)
	for i := range wants {
		w, err := o(i)
		if err != nil {
			return nil, err
		}
		w.what, w.role, w.udp = recipe.Label(role, i, n), role, s.path.Spec.UDP
		wants[i] = w
	}
	boxes, err := s.addBoxes(wants)
	if err != nil {
		return nil, err
	}
	for _, b := range boxes {
		b.kind = s.kind
		if s.attach == nil {
			continue
		}
		if err := s.attach(b); err != nil {
			return nil, fmt.Errorf("%s: %w", b.what, err)
		}
	}
	return boxes, nil
}

// freePort returns a port that is free now and unused in this run.
func (s *site) freePort(at netip.Addr) (uint16, error) {
	const tries = 1000
	for range tries {
		port, err := local.FreePort(s.at.ns, at, s.path.Spec.UDP)
		if err != nil {
			return 0, err
		}
		if s.engine.choose(port) {
			return port, nil
		}
	}
	return 0, errors.New("find a free port: too few ports are free")
}

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

// ownAddress returns the source address of the machine's default route.
func ownAddress(ns *netns.NS, six bool) (a netip.Addr, err error) {
	udp, elsewhere := "udp4", "192.0.2.1:9" // TEST-NET-1; connecting UDP sends nothing
	to, over := "--to loopback", ""
	if six {
		udp, elsewhere = "udp6", "[2001:db8::1]:9" // RFC 3849
		to, over = "--to loopback6,container6, or -4", " over IPv6"
	}
	err = ns.Do(func() error {
		c, err := net.Dial(udp, elsewhere)
		if err != nil {
			return err
		}
		a = c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
		return c.Close()
	})
	if err != nil || a.IsLoopback() {
		return a,
			&machine.UnsupportedError{
				Missing: "this machine has no address that others could reach" + over +
					": there is no default route",
				Remedy: to, Err: err}
	}
	return a, nil
}

func (s *site) describe() error {
	here := local.Described{Space: s.spot.ns, Where: s.spot.name, Devices: []string{"lo"}}
	// The remote machine has the address.
	if s.network != nil && s.network.bridge != "" && s.network.where == "" && s.engine.lost == nil {
		here.Devices = append(here.Devices, s.network.bridge)
	}
	for _, h := range s.path.Hops {
		if h.Kind == mode.HopTap && h.Where == s.engine.name {
			here.Devices = append(here.Devices, h.Name)
		}
	}
	var spots []local.Described
	for _, some := range [][]*box{s.Servers, s.Clients} {
		if len(some) == 0 || some[0].shares {
			continue
		}
		// the others are like the first
		spots = append(spots, local.Described{Space: some[0].ns, Where: some[0].what})
		if b := some[0]; b.port != "" && b.portNS == s.spot.ns {
			here.Devices = append(here.Devices, b.port)
		}
	}
	if s.network != nil && s.network.where != "" {
		spots = append(spots, local.Described{Space: s.Servers[0].portNS, Where: s.network.where})
	}
	// Packets are on the wire only if a switch sends them back.
	if s.path.Facts["parent"] != "" {
		parent := s.path.Facts["parent"]
		if err := local.Cards(s.path, s.engine.ns, thisMachine, parent, s.path.Spec.Mode == mode.MacvlanVEPA); err != nil {
			return err
		}
	}
	if s.at != s.spot {
		spots = append(spots, local.Described{Space: s.at.ns, Where: s.at.name,
			Devices: []string{"lo"}})
	}
	err := local.Describe(s.path, s.spot.ns, append([]local.Described{here}, spots...))
	if v, ok := s.seen(); ok {
		s.path.Sysctls[bridgeNF] = v
	}
	return err
}

func (s *site) namespaces() ([]path.Namespace, error) {
	spots := []local.Described{{Space: s.spot.ns, Where: s.spot.name}}
	if s.at != s.spot {
		spots = append(spots, local.Described{Space: s.at.ns, Where: s.at.name})
	}
	for _, b := range append(slices.Clone(s.Servers), s.Clients...) {
		spots = append(spots, local.Described{Space: b.ns, Where: b.what})
		if b.portNS != nil && s.network != nil {
			spots = append(spots, local.Described{Space: b.portNS, Where: s.network.where})
		}
	}
	return local.Namespaces(spots)
}

const bridgeNF = "net.bridge.bridge-nf-call-iptables"

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

var errNoAddress = errors.New("the engine gave the container no IPv4 address")

const thisMachine = local.ThisMachine

// Hops returns the hops at a place of a route that every mode has in the same form.
func (s *site) Hops(at recipe.At) []path.Hop {
	switch at.Kind() {
	case mode.HopLoopback:
		return s.loopbacks(at)
	case mode.HopBridge:
		return s.crossed(at)
	}
	return nil
}

func (s *site) loopbacks(at recipe.At) []path.Hop {
	switch {
	case at.Last() && len(s.Servers) > 0 && !s.Servers[0].shares:
		return s.EachServer(func(i int) path.Hop { return s.Servers[i].loopbackHop() })
	case at.First():
		return []path.Hop{local.LoopbackHop(s.at.ns, s.at.name)}
	}
	return []path.Hop{local.LoopbackHop(s.engine.ns, s.engine.name)}
}

func (s *site) crossed(at recipe.At) []path.Hop {
	switch at.Crosses(s.away != nil) {
	case recipe.Switched:
		return []path.Hop{s.switchedHop(s.network)}
	case recipe.FirstLeg:
		return []path.Hop{s.bridgeLeg(s.network, "in")}
	case recipe.SecondLeg:
		return []path.Hop{s.bridgeLeg(s.network, "out")}
	case recipe.Leaving:
		return []path.Hop{s.bridgeHop(cmp.Or(s.away, s.network), false)}
	}
	return []path.Hop{s.bridgeHop(s.network, true)}
}

func (b *box) Hop(toServer bool) path.Hop {
	devices := []local.TunedDevice{{Space: b.ns, Name: b.device, Inside: true}}
	if b.port != "" {
		devices = append(devices, local.TunedDevice{Space: b.portNS, Name: b.port})
	}
	return b.tuned.MadeOf(local.ContainerHop(b.kind, b.ns, b.what, b.device, b.port, toServer),
		devices...)
}

func (b *box) loopbackHop() path.Hop {
	return b.tuned.MadeOf(local.LoopbackHop(b.ns, b.what),
		local.TunedDevice{Space: b.ns, Name: "lo"})
}

func (s *site) bridged(n *bridgeNet, h path.Hop) path.Hop {
	s.spans(n)
	d := local.TunedDevice{Space: s.engine.ns, Name: n.bridge}
	if n.where != "" {
		d.Space = s.Servers[0].portNS
	} else {
		d.SetBridgeNF = func(on bool) error { return s.setBridgeNF(n.bridge, on) }
	}
	return s.tuned.MadeOf(h, d)
}

func (s *site) bridgeHop(n *bridgeNet, toServer bool) path.Hop {
	return s.bridged(n, local.BridgeHop(s.engine.ns, s.engine.name, n.bridge, toServer))
}

func (s *site) switchedHop(n *bridgeNet) path.Hop {
	h := local.SwitchHop(cmp.Or(n.where, s.engine.name), n.bridge, sent(s.Clients), sent(s.Servers))
	h.Shared = s.path // a shared bridge, but the path's own ports
	return s.bridged(n, h)
}

// sent returns a reader of the counters of the outer ends of the containers' veth pairs.
func sent(boxes []*box) local.Reader {
	var all []local.Reader
	for _, b := range boxes {
		all = append(all, local.Device(b.portNS, b.port, false))
	}
	return local.Sum(all...)
}

func (s *site) bridgeLeg(n *bridgeNet, leg string) path.Hop {
	return s.bridged(n, local.BridgeLegHop(s.engine.ns, s.engine.name, n.bridge, leg))
}
