package kubernetes

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
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

const tcp, udp = "tcp", "udp"

func (s *site) proto() string {
	if s.path.Spec.UDP {
		return udp
	}
	return tcp
}
