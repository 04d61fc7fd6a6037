package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// End is a node at one end of a path.
type End struct {
	Where   string       // the node's name in hops and settings
	Machine *agent.Agent // reads the node's CPU time
	Agent   *agent.Agent // in the node's own network namespace; nil: toll may not enter it
	// Inspector is the agent that reads the settings of that namespace; nil: Agent.
	Inspector *agent.Agent
	Devices   []agent.Interface
	Card      agent.Interface // the device with the node's address
	Wire      string          // the device towards another machine; may be ""
	Own       []string        // other devices of the node that the path crosses
	To        []netip.Addr    // addresses that are reached through Own
}

// End returns the node of an agent in the node's own namespace. If no device has the node's
// address, it returns a *machine.UnsupportedError with the remedy.
func (d *Devices) End(ctx context.Context, a *agent.Agent, name string, addr netip.Addr,
	remedy string) (End, error) {
	e := End{Where: "node " + name, Machine: a, Agent: a}
	var err error
	if e.Devices, err = d.Of(ctx, a, ""); err != nil {
		return e, err
	}
	var ok bool
	if e.Card, ok = Card(e.Devices, addr); !ok {
		return e, &machine.UnsupportedError{Remedy: remedy, Missing: fmt.Sprintf(
			"the cluster knows node %s by the address %s, which none of its network cards has: it is behind "+
				"NAT, or its container runtime is itself in a container", name, addr)}
	}
	return e, nil
}

// Hop returns the hop of a node's device. forwardRx means that packets to the server are those that
// the device received.
func (e *End) Hop(kind mode.HopKind, name string, forwardRx bool) path.Hop {
	return path.Hop{Kind: kind, Name: name, Where: e.Where, Counts: counts(name, forwardRx),
		Read: e.Agent.Read(agent.Counter{Device: &agent.Device{Name: name, ForwardRx: forwardRx}})}
}

// rewritten identifies a node's count of rewritten connections. Several paths to one port share the
// count.
type rewritten struct {
	agent *agent.Agent
	nat   agent.NAT
}

// NAT returns the hop of rules on the node that rewrite connections.
func (e *End) NAT(kind mode.HopKind, name string, n agent.NAT) path.Hop {
	return path.Hop{Kind: kind, Name: name, Where: e.Where, Expect: path.Matches,
		Shared: rewritten{e.Agent, n}, Read: e.Agent.Read(agent.Counter{NAT: &n})}
}

// Pair returns the node's end of a container's veth pair, and adds that end and its bridge to Own.
// It returns the zero Interface if the node does not have the end.
func (e *End) Pair(ctx context.Context, d *Devices, b *Box) (pair agent.Interface, err error) {
	// The container may be newer than the list of devices.
	if !slices.ContainsFunc(e.Devices, b.paired) {
		d.forget(e.Agent)
		if e.Devices, err = d.Of(ctx, e.Agent, ""); err != nil {
			return pair, err
		}
	}
	i := slices.IndexFunc(e.Devices, b.paired)
	if i < 0 {
		return pair, nil
	}
	pair = e.Devices[i]
	e.Own, e.To = append(e.Own, pair.Name), append(e.To, b.Addr)
	if pair.Master != "" {
		e.Own = append(e.Own, pair.Master)
	}
	return pair, nil
}

// Crossed returns the part of the node's namespace that the path crosses.
func (e *End) Crossed() Spot {
	names := slices.Compact(slices.Sorted(slices.Values(append([]string{e.Card.Name}, e.Own...))))
	return Spot{Agent: cmp.Or(e.Inspector, e.Agent), At: agent.Spot{Where: e.Where, Devices: names}}
}

// Watched returns the namespaces of the ends and the further ones. In namespaces that other
// programs also use, only the routes to the given addresses, and to those that the ends reach, are
// watched.
func Watched(ends []*End, further []Spot, to ...netip.Addr) []Spot {
	all := further
	for _, e := range ends {
		to = append(to, e.To...)
		all = append(all, e.Crossed())
	}
	for i := range all {
		if at := &all[i].At; len(at.Devices) > 0 {
			at.To = to
		}
	}
	return all
}

// AddLinks adds descriptions of the crossed devices to p.
func (e *End) AddLinks(p *path.Path) {
	for _, d := range e.Devices {
		if slices.Contains(e.Crossed().At.Devices, d.Name) {
			d.Where = e.Where
			p.Links = append(p.Links, d.Link)
		}
	}
}

// AddCards adds the network cards that carry the node's address or the wire.
func (e *End) AddCards(ctx context.Context, p *path.Path) error {
	all, crossed, err := e.Agent.Cards(ctx, cmp.Or(e.Wire, e.Card.Name))
	if e.Wire == "" {
		crossed = nil
	}
	p.AddCards(e.Where, all, crossed)
	return err
}

// AddFacts adds the agents' facts about their node.
func (e *End) AddFacts(ctx context.Context, n *sample.Node) {
	hello := e.Machine.Hello()
	n.Kernel, n.CPUs, n.Boot = hello.Kernel, hello.CPUs, hello.Boot
	n.CPUModel = cmp.Or(n.CPUModel, hello.CPUModel)
	if e.Agent == nil {
		return
	}
	n.MTU = e.Card.MTU
	n.Cards, _, _ = e.Agent.Cards(ctx, e.Card.Name) // optional facts
	for i := range n.Cards {
		n.Cards[i].Where = e.Where
	}
}

// Machines returns the machines of the two agents, or one machine if both are on it.
func Machines(server, client *agent.Agent) []path.Machine {
	if client.Hello().Boot == server.Hello().Boot {
		return []path.Machine{server}
	}
	return []path.Machine{server, client}
}

// Two returns the spec's server and client nodes.
func Two[N any](all []N, spec path.Spec, name func(N) string) (server, client N, err error) {
	for wanted, to := range map[string]*N{spec.Server: &server, spec.Client: &client} {
		i := slices.IndexFunc(all, func(n N) bool { return name(n) == wanted })
		if i < 0 {
			return server, client, fmt.Errorf("the run has no node %s", wanted)
		}
		*to = all[i]
	}
	return server, client, nil
}

// Nodes calls about for all nodes concurrently and returns the results. without has the errors, by
// the node's name.
func Nodes[N any](ctx context.Context, nodes []N, about func(N) (sample.Node, error)) (
	all []sample.Node, without map[string]error, err error) {
	var (
		wg   sync.WaitGroup
		errs = make([]error, len(nodes))
	)
	all, without = make([]sample.Node, len(nodes)), map[string]error{}
	for i, n := range nodes {
		wg.Go(func() { all[i], errs[i] = about(n) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	for i, err := range errs {
		if err != nil {
			without[all[i].Name] = err
		}
	}
	return all, without, nil
}
