package swarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// serverPort is the servers' port inside containers.
const serverPort = recipe.ServerPort

// site is a path being built. Its context is that of the one operation; counters and removals,
// which outlive it, do not use it.
type site struct {
	ctx  context.Context
	run  *run
	path *path.Path

	server, client *end
	spots          []cluster.Spot // added by the recipe
}

// end is a node that the path is on.
type end struct {
	Node
	agent   *agent.Agent // in the node's own namespace
	devices []agent.Interface
	card    agent.Interface // the device with the node's address

	inside *agent.Agent // in the node's own namespace, too, if the recipe needs one
	own    []string     // other devices of the node's that the path crosses
	to     []netip.Addr // addresses that it reaches by them
}

// begin finds the two nodes.
func (s *site) begin() error {
	server, client, err := s.pair()
	if err != nil {
		return err
	}
	hosts, err := s.run.service(s.ctx, onHost)
	if err != nil {
		return err
	}
	if s.server, err = s.end(hosts, server); err != nil {
		return err
	}
	if s.client, err = s.end(hosts, client); err != nil {
		return err
	}
	if s.path.Spec.To.Six() {
		if err := overIPv6(s.server, s.client); err != nil {
			return err
		}
	}
	s.path.Machines = []path.Machine{s.server.agent}
	if s.client.agent.Hello().Boot != s.server.agent.Hello().Boot {
		s.path.Machines = append(s.path.Machines, s.client.agent)
	}
	return nil
}

// Finish completes the path after its recipe.
func (s *site) Finish() error {
	s.describe()
	s.inspectable()
	path.Share(s.path, func(h path.Hop) bool { return h.Where == "node "+s.client.Name || h.Where == "node "+s.server.Name })
	if s.path.Spec.Client != "" { // of toll mesh, for one visit of very many
		return nil
	}
	if err := s.cards(); err != nil {
		return err
	}
	return s.guard()
}

// pair returns the path's nodes.
func (s *site) pair() (server, client Node, err error) {
	if s.path.Spec.Client == "" {
		return s.run.nodes[0], s.run.nodes[1], nil
	}
	find := func(name string) (Node, error) {
		i := slices.IndexFunc(s.run.nodes, func(n Node) bool { return n.Name == name })
		if i < 0 {
			return Node{}, fmt.Errorf("the run has no node %s", name)
		}
		return s.run.nodes[i], nil
	}
	server, err = find(s.path.Spec.Server)
	if err != nil {
		return server, client, err
	}
	client, err = find(s.path.Spec.Client)
	return server, client, err
}

// end asks a node's agent for its devices.
func (s *site) end(hosts *service, n Node) (*end, error) {
	a, err := hosts.on(n)
	if err != nil {
		return nil, err
	}
	e := &end{Node: n, agent: a}
	if e.devices, err = s.run.devices.Of(s.ctx, a, ""); err != nil {
		return nil, err
	}
	var ok bool
	if e.card, ok = cluster.Card(e.devices, n.Addr); ok {
		return e, nil
	}
	return nil, &path.UnsupportedError{Missing: fmt.Sprintf("the swarm's address of node %s, %s, is on none of its network cards: it is behind NAT, or the engine runs in a container",
		n.Name, n.Addr), Remedy: "docker swarm join --advertise-addr with an address of the node itself"}
}

// on returns the service's agent on a node.
func (v *service) on(n Node) (*agent.Agent, error) {
	a := v.agents[n.ID]
	if a == nil {
		return nil, cmp.Or(v.errs[n.ID], fmt.Errorf("node %s has no agent", n.Name))
	}
	if err := a.Err(); err != nil {
		return a, &path.LeftError{Node: n.Name, Err: err}
	}
	return a, nil
}

// box is a task of the path.
type box struct{ *cluster.Box }

// box returns the task of a role on a node, with its device whose address within accepts.
func (s *site) box(kind role, n Node, within func(netip.Prefix) bool) (*box, error) {
	v, err := s.run.service(s.ctx, kind)
	if err != nil {
		return nil, err
	}
	a, err := v.on(n)
	if err != nil {
		return nil, err
	}
	devices, err := s.run.devices.Of(s.ctx, a, "")
	if err != nil {
		return nil, err
	}
	b := cluster.Find(a, devices, within)
	if b == nil {
		return nil, fmt.Errorf("%s: %w", a.Name(), errNoAddress)
	}
	s.inspects(a, "", a.Name())
	return &box{b}, nil
}

var errNoAddress = errors.New("the swarm gave the task no IPv4 address")

// hop returns the hop of the task's own device.
func (b *box) hop(server bool) path.Hop { return b.Hop(mode.HopVeth, server) }

// deviceHop returns the hop of a device in a node's own namespace.
func (e *end) deviceHop(kind mode.HopKind, name string, forwardRx bool) path.Hop {
	return cluster.DeviceHop(e.agent, "node "+e.Name, kind, name, forwardRx)
}

// wireHop returns the hop of the server's network card.
func (s *site) wireHop() path.Hop { return s.server.deviceHop(mode.HopWire, s.server.card.Name, true) }

// serve places the server, and the client, which dials it at dial.
func (s *site) serve(server path.Place, listen netip.AddrPort, client path.Place, dial netip.AddrPort) {
	s.path.Servers = []path.Server{{Place: server, Listen: listen, Machine: s.server.agent}}
	s.path.Clients = []path.Client{{Place: client, Dial: dial, Machine: s.client.agent}}
}

// describe records what a result contains of the path's devices.
func (s *site) describe() {
	s.path.Facts["server node"], s.path.Facts["client node"] = s.server.fact(), s.client.fact()
	if s.run.swarm.Image != "" {
		s.path.Facts["image"] = s.run.image
	}
	for _, e := range []*end{s.server, s.client} {
		where := "node " + e.Name
		names := []string{e.card.Name}
		for _, h := range s.path.Hops {
			if h.Where == where && h.Kind == mode.HopBridge {
				names = append(names, h.Name)
			}
		}
		for _, d := range e.devices {
			if slices.Contains(names, d.Name) {
				d.Where = where
				s.path.Links = append(s.path.Links, d.Link)
			}
		}
	}
}

func (e *end) fact() string {
	return fmt.Sprintf("%s (%s), Docker Engine %s, Linux %s", e.Name, e.Addr, e.Engine, e.agent.Hello().Kernel)
}
