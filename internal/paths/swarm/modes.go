package swarm

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/moby/moby/api/types/network"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func (s *site) host() error {
	at := netip.AddrPortFrom(s.server.Addr, cluster.DrawPort())
	s.serve(s.server.Agent.As("container on node "+s.server.Name), at,
		s.client.Agent.As("container on node "+s.client.Name), at)
	return nil
}

// publishNAT publishes the port with mode=host, on the default bridge. The image lacks iptables, so
// rewritten connections are counted in the connection tracking table.
func (s *site) publishNAT() error {
	server, err := s.box(published, s.server.Node, any4)
	if err != nil {
		return err
	}
	dial, proto, err := s.publishedAt(published)
	if err != nil {
		return err
	}
	bridge, err := s.bridgeOf(s.server, server)
	if err != nil {
		return err
	}
	rewritten := agent.NAT{Proto: string(proto), To: dial,
		Now: netip.AddrPortFrom(server.Addr, serverPort)}
	s.Give(mode.HopDNAT, s.server.dnatHop(rewritten))
	return s.dialled(server, dial, s.server.Hop(mode.HopBridge, bridge, false))
}

func any4(p netip.Prefix) bool { return !p.Addr().IsLoopback() }

func (s *site) proto() network.IPProtocol {
	if s.path.Spec.UDP {
		return network.UDP
	}
	return network.TCP
}

func (s *site) publishedAt(kind role) (dial netip.AddrPort, proto network.IPProtocol, err error) {
	proto = s.proto()
	v, err := s.run.service(s.ctx, kind)
	if err != nil {
		return dial, proto, err
	}
	port := v.ports[s.server.ID][proto]
	if port == 0 {
		return dial, proto, fmt.Errorf("node %s published no port", s.server.Name)
	}
	return netip.AddrPortFrom(s.server.Addr, port), proto, nil
}

func (e *end) dnatHop(n agent.NAT) path.Hop {
	return e.NAT(mode.HopDNAT, fmt.Sprintf("%s → %s", n.To, n.Now), n)
}

// dialled places the client of a server in a container. bridges has the hops of the bridges on the
// server's node: its own, and the routing mesh's.
func (s *site) dialled(server *box, dial netip.AddrPort, bridges ...path.Hop) error {
	s.to = server
	place, own := s.client.Agent, path.Hop{}
	if s.path.Spec.From == mode.FromRemoteContainer {
		client, err := s.box(published, s.client.Node, any4)
		if err != nil {
			return err
		}
		if own, err = s.masqueraded(client, dial); err != nil {
			return err
		}
		place = client.Agent
	}
	s.serve(server.Agent, netip.AddrPortFrom(netip.IPv4Unspecified(), serverPort), place, dial)
	s.GiveAt(mode.HopBridge, func(at recipe.At) []path.Hop {
		switch {
		case at.Away():
			return []path.Hop{own}
		case at.After(mode.HopIPVS):
			return bridges[1:]
		}
		return bridges[:1]
	})
	return nil
}

// masqueraded gives the path the rule by which packets of a client's container leave its node, and
// returns the hop of the bridge before.
func (s *site) masqueraded(client *box, dial netip.AddrPort) (bridge path.Hop, err error) {
	name, err := s.bridgeOf(s.client, client)
	if err != nil {
		return bridge, err
	}
	s.from = client
	s.Give(mode.HopSNAT, s.client.NAT(mode.HopSNAT,
		fmt.Sprintf("%s → %s", client.Addr, s.client.Addr),
		agent.NAT{Proto: string(s.proto()), To: dial, Now: dial, From: client.Addr,
			As: s.client.Addr}))
	return s.client.Hop(mode.HopBridge, name, true), nil
}

func (s *site) bridgeOut() error { return s.outside(published, any4) }

// overlayOut builds the path from a task on an overlay network to the outside, through
// docker_gwbridge.
func (s *site) overlayOut() error {
	v, err := s.run.service(s.ctx, onOverlay)
	if err != nil {
		return err
	}
	return s.outside(onOverlay, func(p netip.Prefix) bool {
		return any4(p) && !v.subnet.Contains(p.Addr())
	})
}

func (s *site) outside(kind role, within func(netip.Prefix) bool) error {
	client, err := s.box(kind, s.client.Node, within)
	if err != nil {
		return err
	}
	at := netip.AddrPortFrom(s.server.Addr, cluster.DrawPort())
	bridge, err := s.masqueraded(client, at)
	if err != nil {
		return err
	}
	s.serve(s.server.Agent.As("process on node "+s.server.Name), at, client.Agent, at)
	s.Give(mode.HopBridge, bridge)
	return nil
}

func (s *site) bridgeOf(e *end, b *box) (string, error) {
	pair, err := e.Pair(s.ctx, &s.run.devices, b.Box)
	if err == nil && pair.Master == "" {
		err = fmt.Errorf("%s: its veth pair is not on a bridge of node %s", b.Where, e.Name)
	}
	return pair.Master, err
}

func (s *site) overlay() error {
	kind := onOverlay
	if s.path.Spec.Mode == mode.OverlayEncrypted {
		kind = encrypted
	}
	v, err := s.run.service(s.ctx, kind)
	if err != nil {
		return err
	}
	in := func(p netip.Prefix) bool { return v.subnet.Contains(p.Addr()) }
	server, err := s.box(kind, s.server.Node, in)
	if err != nil {
		return err
	}
	client, err := s.box(kind, s.client.Node, in)
	if err != nil {
		return err
	}
	there, err := s.sandbox(s.server, server, v.network)
	if err != nil {
		return err
	}
	here, err := s.sandbox(s.client, client, v.network)
	if err != nil {
		return err
	}
	for _, b := range []*sandbox{here, there} {
		s.inspects(b.agent, b.namespace, b.where())
	}
	s.serve(server.Agent, netip.AddrPortFrom(netip.IPv4Unspecified(), serverPort), client.Agent,
		netip.AddrPortFrom(server.Addr, serverPort))
	s.to, s.from = server, client
	s.GiveBoth(mode.HopBridge, here.switched(here.port, here.vxlan),
		there.switched(there.vxlan, there.port))
	s.GiveBoth(mode.HopVXLAN, here.tunnel(false), there.tunnel(true))
	if kind == encrypted {
		return s.encryption()
	}
	return nil
}

func subnetOf(n network.Network) (netip.Prefix, error) {
	for _, c := range n.IPAM.Config {
		if c.Subnet.Addr().Is4() {
			return c.Subnet, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("network %s: %w", n.ID, errNoAddress)
}

type sandbox struct {
	node        string
	agent       *agent.Agent
	namespace   string
	port, vxlan string // ports of its bridge
	bridge      string
}

// within returns an agent that can enter a namespace of the node's dockerd, and the namespace's
// devices. namespace is its file in the agent's container, what its name in errors.
func (s *site) within(e *end, what, namespace string) (*agent.Agent, []agent.Interface, error) {
	v, err := s.run.service(s.ctx, inside)
	if err != nil {
		return nil, nil, err
	}
	a, err := v.on(e.Node)
	if err != nil {
		return nil, nil, err
	}
	devices, err := s.run.devices.Of(s.ctx, a, namespace)
	if err != nil {
		return nil, nil, fmt.Errorf("node %s, %s: %w", e.Name, what, err)
	}
	return a, devices, nil
}

func (s *site) sandbox(e *end, b *box, network string) (*sandbox, error) {
	const short = 10 // libnetwork/drivers/overlay: "1-" and the network's short ID
	namespace := inTask + "/1-" + network[:short]
	a, devices, err := s.within(e, "the overlay network's namespace", namespace)
	if err != nil {
		return nil, err
	}
	e.Inspector = a // unlike the node's agent, it may list all BPF programs
	out := &sandbox{node: e.Name, agent: a, namespace: namespace}
	for _, d := range devices {
		switch {
		case d.Index == b.Device.Peer:
			out.port, out.bridge = d.Name, d.Master
		case d.Kind == "vxlan":
			out.vxlan = d.Name
		}
	}
	if out.port == "" || out.vxlan == "" {
		return nil,
			fmt.Errorf("node %s: the overlay network's namespace has no VXLAN device or no veth of %s",
				e.Name, b.Where)
	}
	return out, nil
}

func (b *sandbox) where() string { return "overlay on node " + b.node }

type namespace struct{ node, file string }

func (b *sandbox) counter(name string, forwardRx bool) func() (sample.Counters, error) {
	return b.agent.Read(agent.Counter{Namespace: b.namespace,
		Device: &agent.Device{Name: name, ForwardRx: forwardRx}})
}

func (b *sandbox) tunnel(toServer bool) path.Hop {
	return path.Hop{Kind: mode.HopVXLAN, Name: b.vxlan, Where: b.where(),
		Read: b.counter(b.vxlan, toServer)}
}

func (b *sandbox) switched(toClient, toServer string) path.Hop {
	h := local.SwitchHop(b.where(), b.bridge, b.counter(toClient, false),
		b.counter(toServer, false))
	h.Shared = namespace{b.node, b.namespace} // on the routing mesh's network, all services share it
	h.Counts = [2]path.Counter{{Device: toServer, Sent: true}, {Device: toClient, Sent: true}}
	return h
}

func (s *site) encryption() error {
	esp := agent.Counter{ESP: &agent.ESP{Client: s.client.Addr, Server: s.server.Addr}}
	var hops []path.Hop
	for _, e := range []*end{s.client, s.server} {
		read := e.Agent.Read(esp)
		if err := s.encrypts(e.Node, read); err != nil {
			return err
		}
		hops = append(hops, path.Hop{Kind: mode.HopESP, Name: "ESP", Where: "node " + e.Name,
			Read: read})
	}
	s.GiveBoth(mode.HopESP, hops[0], hops[1])
	return nil
}

// encrypts waits until a node has the ESP states for the path's other node: the engine may set them
// up late. After a failure on a node, later calls do not wait.
func (s *site) encrypts(n Node, read func() (sample.Counters, error)) error {
	s.run.espMu.Lock()
	none := s.run.noESP[n.ID]
	s.run.espMu.Unlock()
	var err error
	if none {
		_, err = read()
	} else {
		err = s.settles(read)
	}
	s.run.espMu.Lock()
	defer s.run.espMu.Unlock()
	switch {
	case err == nil:
		delete(s.run.noESP, n.ID)
	case errors.Is(err, agent.ErrNone):
		s.run.noESP[n.ID] = true
		return &machine.UnsupportedError{
			Missing: fmt.Sprintf(
				"node %s has no ESP state for the other node: its kernel cannot encrypt with ESP and AES-GCM (CONFIG_INET_ESP, CONFIG_CRYPTO_GCM)", n.Name),
			Remedy: "sudo modprobe -a esp4 gcm there, and restart docker", Err: err}
	}
	return err
}

// settles calls read until it returns nil, for a limited time: the engines need some time to set up
// the network of a new task.
func (s *site) settles(read func() (sample.Counters, error)) error {
	const (
		latest = 5 * time.Second
		again  = 200 * time.Millisecond
	)
	for began := time.Now(); ; {
		_, err := read()
		if err == nil || time.Since(began) > latest {
			return err
		}
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-time.After(again):
		}
	}
}
