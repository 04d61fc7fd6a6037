package swarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

const serverPort = recipe.ServerPort

// site is a path that is being built. ctx is the build's context; the path's counters and clean-up
// do not use it.
type site struct {
	ctx  context.Context
	run  *run
	path *path.Path

	server, client *end
	to, from       *box // containers of the ends; nil: processes
	recipe.Given
	spots []cluster.Spot // added by the recipe
}

type end struct {
	Node
	cluster.End
}

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
	s.path.Machines = cluster.Machines(s.server.Agent, s.client.Agent)
	return nil
}

func (s *site) Finish() error {
	s.describe()
	s.inspectable()
	path.Share(s.path, func(h path.Hop) bool {
		return h.Where == s.client.Where || h.Where == s.server.Where
	})
	if s.path.Spec.Client != "" { // a mesh has too many paths for that
		return nil
	}
	for _, e := range []*end{s.server, s.client} {
		if err := e.AddCards(s.ctx, s.path); err != nil {
			return err
		}
	}
	return s.guard()
}

func (s *site) pair() (server, client Node, err error) {
	if s.path.Spec.Client == "" {
		return s.run.nodes[0], s.run.nodes[1], nil
	}
	return cluster.Two(s.run.nodes, s.path.Spec, func(n Node) string { return n.Name })
}

func (s *site) end(hosts *service, n Node) (*end, error) {
	a, err := hosts.on(n)
	if err != nil {
		return nil, err
	}
	e, err := s.run.devices.End(s.ctx, a, n.Name, n.Addr,
		"docker swarm join --advertise-addr with an address of the node itself")
	e.Wire = e.Card.Name
	return &end{Node: n, End: e}, err
}

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

type box struct{ *cluster.Box }

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

func (b *box) hop(server bool) path.Hop { return b.Hop(mode.HopVeth, server) }

func (s *site) wireHop() path.Hop { return s.server.Hop(mode.HopWire, s.server.Card.Name, true) }

// Hops returns the hops at a place of a route that every mode has in the same form.
func (s *site) Hops(at recipe.At) []path.Hop {
	switch k := at.Kind(); {
	case k == mode.HopWire:
		return []path.Hop{s.wireHop()}
	case k == mode.HopVeth && at.First():
		return []path.Hop{s.from.hop(false)}
	case k == mode.HopVeth:
		return []path.Hop{s.to.hop(true)}
	}
	return nil
}

func (s *site) serve(server path.Place, listen netip.AddrPort, client path.Place,
	dial netip.AddrPort) {
	s.path.Servers = []path.Server{{Place: server, Listen: listen, Machine: s.server.Agent}}
	s.path.Clients = []path.Client{{Place: client, Dial: dial, Machine: s.client.Agent}}
}

func (s *site) describe() {
	s.path.Facts["server node"], s.path.Facts["client node"] = s.server.fact(), s.client.fact()
	if s.run.swarm.Image != "" {
		s.path.Facts["image"] = s.run.image
	}
	s.server.AddLinks(s.path)
	s.client.AddLinks(s.path)
}

func (e *end) fact() string {
	return fmt.Sprintf("%s (%s), Docker Engine %s, Linux %s", e.Name, e.Addr, e.Engine,
		e.Agent.Hello().Kernel)
}

// inspects adds a namespace that contains only the run's paths.
func (s *site) inspects(a *agent.Agent, file, where string) {
	s.spots = append(s.spots, cluster.Spot{Agent: a, At: agent.Spot{Namespace: file, Where: where}})
}

// inspectsOf adds the path's devices in a namespace that other programs also use.
func (s *site) inspectsOf(a *agent.Agent, file, where string, devices ...string) {
	s.spots = append(s.spots, cluster.Spot{
		Agent: a, At: agent.Spot{Namespace: file, Where: where, Devices: devices}})
}

func (s *site) inspectable() {
	ends := []*cluster.End{&s.client.End, &s.server.End}
	spots := cluster.Watched(ends, s.spots, s.server.Addr, s.client.Addr)
	s.path.Inspect = func() ([]path.Setting, error) { return cluster.Inspect(spots) }
}

// guard returns an error if a setting may let packets bypass a hop, or if the settings cannot be
// read. host has one hop, which packets cannot bypass.
func (s *site) guard() error {
	all, err := s.path.Inspect()
	if err != nil || len(s.path.Hops) == 1 {
		return err
	}
	return path.Undiverted(all)
}

// overIPv6 sets both ends' addresses to IPv6 addresses of the nodes' cards in one network. The
// swarm knows only one address of a node, usually an IPv4 one.
func overIPv6(server, client *end) error {
	usable := func(p netip.Prefix) bool {
		return p.Addr().Is6() && p.Addr().IsGlobalUnicast() && !p.IsSingleIP()
	}
	for _, a := range server.Card.Addrs {
		for _, b := range client.Card.Addrs {
			if usable(a) && usable(b) && a.Masked() == b.Masked() {
				server.Addr, client.Addr = a.Addr(), b.Addr()
				return nil
			}
		}
	}
	return &machine.UnsupportedError{Missing: fmt.Sprintf(
		"the cards of nodes %s and %s, %s and %s, have no IPv6 addresses in one network",
		server.Name, client.Name, server.Card.Name, client.Card.Name),
		Remedy: "addresses of one network on both, as by ip -6 address add; or -4"}
}
