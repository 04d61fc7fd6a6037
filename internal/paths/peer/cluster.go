package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/undo"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Cluster is the backend for a mesh of machines that are reached by ssh. Each machine dials the
// others. Hosts and Version must be set.
type Cluster struct {
	// Hosts lists the machines. A Host that is Here needs no ssh.
	Hosts []Host
	// Names has the name of each of Hosts in the report. Without a name, it is the host's own.
	Names []string
	// Network is the network in which the machines dial each other; invalid: any.
	Network netip.Prefix
	// Binary, Version, Sudo and SSH are as in Peer.
	Binary  string
	Version string
	Sudo    bool
	SSH     []string

	kept cluster.Once[*fleet]
}

var _ path.Builder = (*Cluster)(nil)

// Name returns "peer".
func (c *Cluster) Name() string { return Name }

type fleet struct {
	cluster *Cluster
	hub     *agent.Hub
	members []*member
	end     undo.Stack

	mu   sync.Mutex
	ways map[[2]*member]way
}

type member struct {
	name    string
	host    Host
	seen    have
	agent   *agent.Agent
	devices []agent.Interface
	addrs   []netip.Addr // addresses for the others to dial, likeliest first
	err     error        // why the machine does not take part
}

// way has the routes from a client to a server and back.
type way struct {
	dial        netip.Addr
	there, back link.Route
}

// Cluster starts an agent on each machine and returns the machines' facts. without has the names of
// machines without an agent, with the reason.
func (c *Cluster) Cluster(ctx context.Context) (all []sample.Node, without map[string]error,
	err error) {
	f, err := c.start(ctx)
	if err != nil {
		return nil, nil, err
	}
	return cluster.Nodes(ctx, f.members, func(m *member) (sample.Node, error) {
		about := sample.Node{Name: m.name}
		if m.err != nil {
			return about, m.err
		}
		about.Address = m.addrs[0].String()
		e := cluster.End{Where: "peer " + m.name, Machine: m.agent, Agent: m.agent}
		e.Card, _ = cluster.Card(m.devices, m.addrs[0])
		e.AddFacts(ctx, &about)
		return about, nil
	})
}

// Check returns an error if the path's two machines do not reach each other.
func (c *Cluster) Check(ctx context.Context, spec path.Spec) error {
	if spec.Mode != mode.Native {
		return &machine.UnsupportedError{
			Missing: "between machines that are reached by ssh, a mesh is measured in mode native only",
			Remedy:  "--mode native; a swarm has other modes: --on swarm"}
	}
	return cluster.Check(ctx, c, spec)
}

// Build builds the path between the spec's two machines.
func (c *Cluster) Build(ctx context.Context, spec path.Spec) (*path.Path, error) {
	var between func(*leg) error
	if spec.Mode == mode.Native {
		between = (*leg).native
	}
	return recipe.Build(ctx, spec, between, func(p *path.Path) (*leg, error) {
		f, err := c.start(ctx)
		if err != nil {
			return nil, err
		}
		p.Channel = f.hub
		l := &leg{path: p}
		if l.server, err = f.find(spec.Server); err != nil {
			return nil, err
		}
		if l.client, err = f.find(spec.Client); err != nil {
			return nil, err
		}
		l.way, err = f.way(ctx, l.client, l.server)
		return l, err
	})
}

// start starts the agents once and keeps the result until Close.
func (c *Cluster) start(ctx context.Context) (*fleet, error) {
	return c.kept.Start(ctx, c.begin)
}

func (c *Cluster) begin(ctx context.Context) (_ *fleet, err error) {
	f := &fleet{cluster: c, ways: map[[2]*member]way{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.end.Undo())
		}
	}()
	key, err := agent.NewKey()
	if err != nil {
		return nil, err
	}
	here, err := netns.Here()
	if err != nil {
		return nil, err
	}
	f.end.Push("leave this machine", here.Close)
	f.hub = agent.NewHub(key, c.Version)
	f.name()
	f.join(ctx, here, key.Bundle())
	f.end.Push("release the agents", f.hub.Close)
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return f, f.address()
}

// name sets the machines' names: the given name, or the host's or, if several machines have the
// same host name, [user@]HOST[:PORT].
func (f *fleet) name() {
	count := map[string]int{}
	for _, h := range f.cluster.Hosts {
		count[h.Name]++
	}
	for i, h := range f.cluster.Hosts {
		m := &member{name: h.Name, host: h}
		if count[h.Name] > 1 {
			m.name = h.String()
		}
		if i < len(f.cluster.Names) && f.cluster.Names[i] != "" {
			m.name = f.cluster.Names[i]
		}
		f.members = append(f.members, m)
	}
}

// join starts the agents, a limited number at a time, and sets the members' errors.
func (f *fleet) join(ctx context.Context, here *netns.NS, bundle []byte) {
	const atOnce = 16
	turn := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for _, m := range f.members {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			m.err = f.bring(ctx, here, bundle, m)
		})
	}
	wg.Wait()
}

func (f *fleet) bring(ctx context.Context, here *netns.NS, bundle []byte, m *member) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := &Peer{Host: m.host, Binary: f.cluster.Binary, Version: f.cluster.Version,
		Sudo: f.cluster.Sudo, SSH: f.cluster.SSH}
	dial := p.dial
	if m.host.here() {
		dial = p.beside
	}
	c, err := dial(ctx, here, bundle)
	if err != nil {
		return err
	}
	f.end.Push("end ssh to "+m.name, c.close)
	if err := f.hub.Serve(c.carrier); err != nil {
		return err
	}
	m.seen = c.seen
	if m.agent, err = c.joined(ctx, f.hub); err != nil {
		return err
	}
	m.devices, err = m.agent.Interfaces(ctx, "")
	return err
}

// address sets the addresses at which the others may dial each machine. They are those at the ends
// of ssh's connection and those of cards with a default route or, if a network is given, all
// addresses in that network. address returns an error if a machine is named twice.
func (f *fleet) address() error {
	var seen []netip.Addr // this machine's addresses
	for _, m := range f.members {
		seen = append(seen, m.seen.Here.Addr())
	}
	for i, m := range f.members {
		if m.err != nil {
			continue
		}
		m.addrs = m.addresses(seen, f.cluster.Network)
		if len(m.addrs) == 0 {
			m.err = &machine.UnsupportedError{Missing: m.name +
				" has no address that the others could dial",
				Remedy: "--address with a network in which all machines have an address"}
			if f.cluster.Network.IsValid() {
				m.err = &machine.UnsupportedError{Missing: fmt.Sprintf(
					"%s has no address in %s", m.name, f.cluster.Network),
					Remedy: "--address with a network in which all machines have an address"}
			}
			continue
		}
		for _, other := range f.members[:i] {
			if other.err == nil && m.same(other) {
				return &machine.UnsupportedError{Missing: fmt.Sprintf(
					"%s is the same machine as %s: both have %s", m.name, other.name, m.addrs[0]),
					Remedy: "name each machine once"}
			}
		}
	}
	return nil
}

// addresses returns a machine's addresses for the others to dial, likeliest first. seen lists the
// addresses of this machine that the others see.
func (m *member) addresses(seen []netip.Addr, within netip.Prefix) (out []netip.Addr) {
	add := func(a netip.Addr) {
		if a.IsGlobalUnicast() && a.Zone() == "" && (!within.IsValid() || within.Contains(a)) &&
			!slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	first := []netip.Addr{m.seen.There.Addr()}
	if m.host.here() {
		first = seen
	}
	for _, a := range first {
		if has(m.devices, a) { // otherwise a NAT is in between
			add(a)
		}
	}
	for _, d := range m.devices {
		if !d.Up || d.Name == loopback || !d.Uplink && !within.IsValid() {
			continue
		}
		for _, p := range d.Addrs {
			add(p.Addr())
		}
	}
	return out
}

func (m *member) same(other *member) bool {
	return m.agent.Hello().Boot == other.agent.Hello().Boot && has(other.devices, m.addrs[0])
}

func (f *fleet) find(name string) (*member, error) {
	for _, m := range f.members {
		if m.name != name {
			continue
		}
		if m.err != nil {
			return nil, m.err
		}
		if err := m.agent.Err(); err != nil {
			return nil, &path.LeftError{Node: name, Err: err}
		}
		return m, nil
	}
	return nil, fmt.Errorf("the run has no machine %s", name)
}

// way returns the routes between two machines. It asks both kernels and remembers the result.
func (f *fleet) way(ctx context.Context, client, server *member) (w way, err error) {
	key := [2]*member{client, server}
	f.mu.Lock()
	w, ok := f.ways[key]
	f.mu.Unlock()
	if ok {
		return w, nil
	}
	var last error
	for _, at := range server.addrs {
		w, err := route(ctx, client, server, at)
		if err == nil {
			f.mu.Lock()
			f.ways[key] = w
			f.mu.Unlock()
			return w, nil
		}
		last = cmp.Or(last, err)
	}
	return w, &machine.UnsupportedError{Missing: fmt.Sprintf(
		"%s has no route to %s", client.name, server.name), Err: last,
		Remedy: "--address with a network in which both have an address"}
}

func route(ctx context.Context, client, server *member, at netip.Addr) (w way, err error) {
	w.dial = at
	if w.there, err = client.agent.Route(ctx, at); err != nil {
		return w, err
	}
	if w.back, err = server.agent.Route(ctx, w.there.Source); err != nil {
		return w, err
	}
	if w.there.Device == loopback || w.back.Device == loopback {
		return w, fmt.Errorf("both machines have the address %s", at)
	}
	return w, nil
}

// Close ends the agents and their connections.
func (c *Cluster) Close() error {
	return c.kept.Close(func(f *fleet) error { return f.end.Undo() })
}

type leg struct {
	path           *path.Path
	client, server *member
	way
}

func (l *leg) native() error {
	at := netip.AddrPortFrom(l.dial, cluster.DrawPort())
	l.path.Servers = []path.Server{{Place: l.server.agent, Listen: at, Machine: l.server.agent}}
	l.path.Clients = []path.Client{{Place: l.client.agent, Dial: at, Machine: l.client.agent}}
	l.path.Hops = []path.Hop{{Kind: mode.HopWire, Name: l.there.Device + "⇄" + l.back.Device,
		Where: l.between(),
		Read: cluster.Both(l.client.agent.Read(
			agent.Counter{Device: &agent.Device{Name: l.there.Device}}),
			l.server.agent.Read(agent.Counter{Device: &agent.Device{
				Name: l.back.Device, ForwardRx: true}}))}}
	l.path.Machines = cluster.Machines(l.server.agent, l.client.agent)
	return nil
}

func (l *leg) between() string { return l.client.name + " and " + l.server.name }

func (l *leg) Finish() error {
	l.path.Facts["route there"] = wayInWords(l.there.Source, l.there, l.dial)
	l.path.Facts["route back"] = wayInWords(l.dial, l.back, l.there.Source)
	path.Share(l.path, func(h path.Hop) bool { return h.Where == l.between() })
	return nil
}
