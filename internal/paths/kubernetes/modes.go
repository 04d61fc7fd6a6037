package kubernetes

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

var anywhere = netip.AddrPortFrom(netip.IPv4Unspecified(), serverPort)

func loopbackHop(a *agent.Agent, others bool) path.Hop {
	return path.Hop{Kind: mode.HopLoopback, Name: "lo", Where: a.Name(), Expect: path.CarriesBoth,
		Others: others,
		Read: a.Read(agent.Counter{Device: &agent.Device{
			Name: "lo", ForwardRx: true, OneWay: true}})}
}

func (s *site) host() error {
	pod := func(e *end) path.Place { return e.Agent.As("pod with hostNetwork on " + e.Where) }
	port := cluster.DrawPort()
	at := netip.AddrPortFrom(s.server.Addr, port)
	if s.run.here != nil {
		return s.hostFromOutside(pod(s.server), port)
	}
	if s.client == s.server {
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
		s.serve(pod(s.server), at, pod(s.client), at)
		s.path.Hops = []path.Hop{loopbackHop(s.server.Agent, true)}
		return nil
	}
	s.serve(pod(s.server), at, pod(s.client), at)
	var err error
	s.path.Hops, err = s.between(s.server.Addr, s.client.Addr)
	s.path.Hops = slices.DeleteFunc(s.path.Hops, func(h path.Hop) bool {
		return h.Kind != mode.HopWire
	})
	return err
}

func (s *site) shared() error {
	b, err := s.box(serving, s.server)
	if err != nil {
		return err
	}
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), serverPort)
	s.serve(b.Agent, at, b.Agent, at)
	s.path.Hops = []path.Hop{loopbackHop(b.Agent, false)}
	return nil
}

type caller struct {
	agent *agent.Agent // nil: outside the cluster
	box   *box         // nil: on the node itself
	addr  netip.Addr
	dials netip.Addr // address of a node, dialled from outside
}

func (c caller) name() string {
	if c.agent == nil {
		return thisMachine
	}
	return c.agent.Name()
}

func (c caller) knock(ctx context.Context, k agent.Knock) error {
	if c.agent != nil {
		return c.agent.Knock(ctx, k)
	}
	k.To = netip.AddrPortFrom(c.dials, k.To.Port())
	k.Do()
	return nil
}

func (s *site) calls(dial netip.Addr) (caller, error) {
	switch s.path.Spec.From {
	case mode.FromHost, mode.FromRemote:
		c := caller{agent: s.client.Agent, addr: s.client.Addr}
		// If a tunnel leads to the pods, the source address is the tunnel device's.
		if way, err := s.client.Agent.Route(s.ctx, dial); err == nil && way.Source.Is4() {
			c.addr = way.Source
		}
		return c, nil
	}
	kind := calling
	if s.path.Spec.Client != "" { // a mesh needs only one pod on each node
		kind = serving
	}
	b, err := s.box(kind, s.client)
	if err != nil {
		return caller{}, err
	}
	return caller{agent: b.Agent, box: b, addr: b.Addr}, nil
}

func (s *site) first(c caller) []path.Hop {
	if c.box == nil {
		return nil
	}
	hops := []path.Hop{c.box.hop(false)}
	if s.client != s.server {
		hops = append(hops, c.box.bridged(s.client, false)...)
	}
	return hops
}

// last returns the hops from the server's node to the server. Between pods on one node, the bridge
// counts as a switch.
func (s *site) last(c caller, server *box) []path.Hop {
	var hops []path.Hop
	if s.client == s.server && c.box != nil {
		hops = s.server.switched(c.box, server)
	} else {
		hops = server.bridged(s.server, true)
	}
	return append(hops, server.hop(true))
}

func (s *site) pod() error {
	if s.path.Spec.To.Outside() {
		return s.podOutside()
	}
	server, err := s.box(serving, s.server)
	if err != nil {
		return err
	}
	return s.direct(server, server.Addr)
}

// podOutside dials a process on the other node. Many plug-ins rewrite the pod's address, because
// the node is outside the pods' networks.
func (s *site) podOutside() error {
	at := netip.AddrPortFrom(s.server.Addr, cluster.DrawPort())
	c, err := s.calls(s.server.Addr)
	if err != nil {
		return err
	}
	n := agent.NAT{Proto: s.proto(), To: at, Now: at, From: c.addr, Source: conntrack.Changed}
	masked, err := s.masquerades(c, n)
	if err != nil {
		return err
	}
	back, nat := c.addr, []path.Hop(nil)
	if masked {
		back = s.client.Addr
		nat = []path.Hop{s.client.NAT(mode.HopSNAT, c.addr.String()+" → the node's", n)}
	}
	between, err := s.between(s.server.Addr, back)
	if err != nil {
		return err
	}
	s.serve(s.server.Agent.As("process on "+s.server.Where), at, c.agent, at)
	s.path.Hops = slices.Concat(s.first(c), nat, between)
	return nil
}

// masquerades reports whether the client's node rewrites the pod's address. It sends datagrams
// until the node's connection tracking table has an entry of one. It gives up after a while,
// because a node without rules does not track connections. One datagram may not suffice: the first
// one may wait for a neighbour's address.
func (s *site) masquerades(c caller, n agent.NAT) (bool, error) {
	if known, ok := s.run.knocked.Load("out " + c.name()); ok {
		return known.([2]bool)[1], nil
	}
	const latest = 3 * time.Second
	n.Proto = udp
	sees := n
	sees.Source = conntrack.Any
	both := []agent.Counter{{NAT: &sees}, {NAT: &n}}
	before, err := s.client.Agent.Counters(s.ctx, both)
	if err != nil {
		return false, err
	}
	masked := false
	for began := time.Now(); time.Since(began) < latest; time.Sleep(again) {
		if err := c.knock(s.ctx, agent.Knock{Proto: n.Proto, To: n.To}); err != nil {
			return false, err
		}
		got, err := s.client.Agent.Counters(s.ctx, both)
		if err != nil {
			return false, err
		}
		masked = got[1].Hits > before[1].Hits
		if got[0].Hits > before[0].Hits {
			break
		}
	}
	s.run.knocked.Store("out "+c.name(), [2]bool{false, masked})
	return masked, nil
}

func (s *site) direct(server *box, dial netip.Addr) error {
	c, err := s.calls(dial)
	if err != nil {
		return err
	}
	s.serve(server.Agent, anywhere, c.agent, netip.AddrPortFrom(dial, serverPort))
	var between []path.Hop
	if s.client != s.server {
		if between, err = s.between(server.Addr, c.addr); err != nil {
			return err
		}
	}
	s.path.Hops = slices.Concat(s.first(c), between, s.last(c, server))
	return nil
}

// headless dials the address of the pod to which the service's name resolves.
func (s *site) headless() error {
	server, err := s.box(serving, s.server)
	if err != nil {
		return err
	}
	made, err := s.run.frontOf(s.ctx, headless)
	if err != nil {
		return err
	}
	c, err := s.calls(server.Addr)
	if err != nil {
		return err
	}
	name := made.Name + "." + made.Namespace + ".svc"
	if known, ok := s.run.unnamed.Load(c.agent.Name()); ok {
		return known.(error) // do not wait again
	}
	const latest = 10 * time.Second // it takes time until the DNS server learns of the service
	for began := time.Now(); ; {
		addrs, took, err := c.agent.Lookup(s.ctx, name)
		if err == nil && slices.Contains(addrs, server.Addr) {
			s.path.Facts["DNS"] = fmt.Sprintf("%s is %s, looked up in %s; no visit looks it up",
				name, server.Addr, took.Round(10*time.Microsecond))
			break
		}
		gone := c.agent.Err() != nil || s.ctx.Err() != nil
		if err == nil {
			err = fmt.Errorf("it resolved to %v, and the pod has %s", addrs, server.Addr)
		}
		if gone || time.Since(began) > latest ||
			strings.Contains(err.Error(), "connection refused") {
			err := &path.UnsupportedError{
				Missing: "the cluster has no DNS server that resolves a service's name", Err: err,
				Remedy: "CoreDNS, and kubelet's clusterDNS; or pod, which dials the same address"}
			if !gone {
				s.run.unnamed.Store(c.agent.Name(), err)
			}
			return err
		}
		time.Sleep(again)
	}
	return s.direct(server, server.Addr)
}

const again = 200 * time.Millisecond

const tcp, udp = "tcp", "udp"

func (s *site) proto() string {
	if s.path.Spec.UDP {
		return udp
	}
	return tcp
}

// rewritten reports how the node rewrites a connection to a service: with DNAT, and whether it also
// rewrites the client's address. It sends datagrams and reads the node's connection tracking table,
// from which a refused TCP connection would vanish at once. It tries for a while, because
// kube-proxy may install the rules late.
func (s *site) rewritten(e *end, c caller, to, now netip.AddrPort) (dnat, masked bool, err error) {
	if e.Agent == nil {
		return false, false, nil
	}
	key := fmt.Sprintf("%s %s %v", e.Name, c.name(), to)
	if known, ok := s.run.knocked.Load(key); ok {
		k := known.([2]bool)
		return k[0], k[1], nil
	}
	const latest = 12 * time.Second
	n := agent.NAT{Proto: udp, To: to, Now: now}
	masks := n
	masks.Source = conntrack.Changed
	both := []agent.Counter{{NAT: &n}, {NAT: &masks}}
	before, err := e.Agent.Counters(s.ctx, both)
	if err != nil {
		return false, false, err
	}
	for began := time.Now(); time.Since(began) < latest; time.Sleep(again) {
		if err := c.knock(s.ctx, agent.Knock{Proto: n.Proto, To: n.To}); err != nil {
			return false, false, err
		}
		got, err := e.Agent.Counters(s.ctx, both)
		if err != nil {
			return false, false, err
		}
		if got[0].Hits > before[0].Hits {
			masked = got[1].Hits > before[1].Hits
			s.run.knocked.Store(key, [2]bool{true, masked})
			return true, masked, nil
		}
	}
	s.run.knocked.Store(key, [2]bool{})
	return false, false, nil
}

func (s *site) natHops(e *end, c caller, dial, knock, now netip.AddrPort, what string,
	source conntrack.Source) ([]path.Hop, error) {
	n := agent.NAT{Proto: s.proto(), To: dial, Now: now}
	dnat, masked, err := s.rewritten(e, c, knock, now)
	if err != nil {
		return nil, err
	}
	if !dnat {
		if e.Agent != nil {
			s.unseen = append(s.unseen, fmt.Sprintf(
				"%s: the connection tracking table of %s has no NAT for it (no kube-proxy, or eBPF in its place)", what, e.Where))
		}
		return nil, nil
	}
	if source == conntrack.Kept && masked {
		return nil, &path.UnsupportedError{Missing: fmt.Sprintf(
			"%s rewrites the client's address although the service has externalTrafficPolicy: Local", e.Where),
			Remedy: "nodeport"}
	}
	n.Source = source
	hops := []path.Hop{e.NAT(mode.HopDNAT, fmt.Sprintf("%s → %s", dial, now), n)}
	if masked {
		m := n
		m.Source = conntrack.Changed
		hops = append(hops, e.NAT(mode.HopSNAT, "client's address", m))
	}
	return hops, nil
}

func (s *site) clusterIP() error {
	server, err := s.box(serving, s.server)
	if err != nil {
		return err
	}
	made, err := s.run.frontOf(s.ctx, clusterIP)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(made.Spec.ClusterIP)
	if err != nil || !ip.Is4() {
		return &path.UnsupportedError{Missing: fmt.Sprintf(
			"the service's address is %q, not an IPv4 address", said(made.Spec.ClusterIP)),
			Remedy: "pod"}
	}
	c, err := s.calls(ip)
	if err != nil {
		return err
	}
	dial := netip.AddrPortFrom(ip, serverPort)
	nat, err := s.natHops(s.client, c, dial, dial, netip.AddrPortFrom(server.Addr, serverPort),
		"the service's address "+dial.String(), conntrack.Any)
	if err != nil {
		return err
	}
	s.serve(server.Agent, anywhere, c.agent, dial)
	// The hops lead to the pod, not to the service's address.
	if c.box == nil && slices.ContainsFunc(nat, func(h path.Hop) bool {
		return h.Kind == mode.HopSNAT
	}) {
		if direct, err := s.calls(server.Addr); err == nil {
			c.addr = direct.addr
		}
	}
	var between []path.Hop
	if s.client != s.server {
		if between, err = s.between(server.Addr, c.addr); err != nil {
			return err
		}
	}
	s.path.Hops = slices.Concat(s.first(c), nat, between, s.last(c, server))
	return nil
}

func (s *site) hostPort() error {
	server, err := s.box(published, s.server)
	if err != nil {
		return err
	}
	return s.onNode(server, uint16(server.port), uint16(server.port), "the host port",
		conntrack.Any)
}

func (s *site) nodePort() error { return s.nodePortOf(nodePort, conntrack.Any) }

// nodePortLocal uses a node port with externalTrafficPolicy: Local. Only pods on the dialled node
// receive its connections, and they see the client's address.
func (s *site) nodePortLocal() error { return s.nodePortOf(nodePortLocal, conntrack.Kept) }

func (s *site) nodePortOf(kind front, source conntrack.Source) error {
	server, err := s.box(serving, s.server)
	if err != nil {
		return err
	}
	made, err := s.run.frontOf(s.ctx, kind)
	if err != nil {
		return err
	}
	ports := map[corev1.Protocol]uint16{}
	for _, p := range made.Spec.Ports {
		ports[p.Protocol] = uint16(p.NodePort)
	}
	port, knock := ports[corev1.ProtocolTCP], ports[corev1.ProtocolUDP]
	if s.path.Spec.UDP {
		port = knock
	}
	if port == 0 || knock == 0 {
		return fmt.Errorf("the cluster gave the service %s no node port", made.Name)
	}
	return s.onNode(server, port, knock, "the node port", source)
}

// onNode dials a port of the server's node. knock is the port for datagrams.
func (s *site) onNode(server *box, port, knock uint16, what string, source conntrack.Source) error {
	if s.run.here != nil {
		return s.onNodeFromOutside(server, port, knock, what, source)
	}
	c, err := s.calls(s.server.Addr)
	if err != nil {
		return err
	}
	dial := netip.AddrPortFrom(s.server.Addr, port)
	nat, err := s.natHops(s.server, c, dial, netip.AddrPortFrom(s.server.Addr, knock),
		netip.AddrPortFrom(server.Addr, serverPort), fmt.Sprintf("%s %s", what, dial), source)
	if err != nil {
		return err
	}
	s.serve(server.Agent, anywhere, c.agent, dial)
	var between []path.Hop
	if s.client != s.server {
		if between, err = s.between(s.server.Addr, c.addr); err != nil {
			return err
		}
	}
	s.path.Hops = slices.Concat(s.first(c), between, nat, s.last(c, server))
	return nil
}
