package kubernetes

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

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
			err := &machine.UnsupportedError{
				Missing: "the cluster has no DNS server that resolves a service's name", Err: err,
				Remedy: "CoreDNS, and kubelet's clusterDNS; or pod, which dials the same address",
				Lack:   machine.LackDNS}
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
		return nil, &machine.UnsupportedError{Missing: fmt.Sprintf(
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
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
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
