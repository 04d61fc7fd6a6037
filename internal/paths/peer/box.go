package peer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

const clientContainer = "client container on "

// client places the client of a path to this machine's Docker Engine on the peer, as a process or
// in a new container. It returns the hops from the client to this machine's card.
func (r *run) client(ctx context.Context, p *path.Path, dial netip.AddrPort,
	segment *docker.Segment) (path.Place, []path.Hop, error) {
	s := &site{ctx: ctx, run: r, path: p}
	if err := s.begin(); err != nil {
		return nil, nil, err
	}
	wire := s.wireHop()
	if p.Spec.From != mode.FromRemoteContainer {
		return r.agent, []path.Hop{wire}, nil
	}
	order, on := s.order(segment)
	engine, err := r.agent.Boxes(ctx)
	if err != nil {
		return nil, nil, err
	}
	p.Facts["peer's engine"], p.Facts["client's network"] = engine, on
	inner, remove, err := r.agent.MakeBox(ctx, order)
	if err != nil {
		return nil, nil, err
	}
	p.Undo.Push("remove the "+order.Name, remove)
	if p.Spec.Mode == mode.Host {
		inside, err := inner.Interfaces(ctx, "")
		if err == nil && !has(inside, s.client) {
			err = s.elsewhere()
		}
		return inner, []path.Hop{wire}, err
	}
	inside, err := inner.Interfaces(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	b := cluster.Find(inner, inside, func(p netip.Prefix) bool { return !p.Addr().IsLoopback() })
	if b == nil {
		return nil, nil, errors.New("the Docker Engine there gave no IPv4 address to the " +
			inner.Name())
	}
	within := cluster.Spot{Agent: inner, At: agent.Spot{Where: inner.Name()}}
	if segment != nil {
		r.remember(p, within)
		return inner, []path.Hop{b.Hop(mode.HopKind(segment.Driver), false), wire}, nil
	}
	there := cluster.End{Where: r.agent.Name(), Agent: r.agent}
	pair, err := there.Pair(ctx, &cluster.Devices{}, b)
	if err != nil {
		return nil, nil, err
	}
	if pair.Master == "" {
		return nil, nil, s.elsewhere()
	}
	r.remember(p, within, cluster.Spot{Agent: r.agent,
		At: agent.Spot{Where: there.Where, Devices: there.Own, To: there.To}})
	proto := "tcp"
	if p.Spec.UDP {
		proto = "udp"
	}
	return inner, []path.Hop{
		b.Hop(mode.HopVeth, false),
		there.Hop(mode.HopBridge, pair.Master, true),
		there.NAT(mode.HopSNAT, fmt.Sprintf("%s → %s", b.Addr, s.client),
			agent.NAT{Proto: proto, To: dial, Now: dial, From: b.Addr, As: s.client}),
		wire,
	}, nil
}

// order returns the container to make for the client, and the words for its network.
func (s *site) order(segment *docker.Segment) (agent.Box, string) {
	order := agent.Box{Name: clientContainer + s.run.agent.Name()}
	on := "a user-defined bridge network of toll's, as by docker network create"
	switch {
	case segment != nil:
		order.LAN = &agent.LAN{Driver: segment.Driver, Kind: segment.Kind, Parent: s.there.Device,
			Subnet: segment.Subnet.String(), Addr: segment.Client.String()}
		on = "a user-defined " + segment.Driver + " network of toll's on " + s.there.Device +
			", with the addresses of the server's"
	case s.path.Spec.Mode == mode.Host:
		order.Network, on = "host", "the peer's own"
	case s.path.Spec.Mode == mode.PublishDefault:
		order.Network, on = "bridge", "Docker's default bridge network" // Docker's name
	}
	return order, on
}

// server places the server of a path outside as a process of the peer.
func (r *run) server(ctx context.Context, p *path.Path) (path.Place, netip.AddrPort, path.Hop,
	error) {
	s := &site{ctx: ctx, run: r, path: p}
	if err := s.begin(); err != nil {
		return nil, netip.AddrPort{}, path.Hop{}, err
	}
	return r.agent, netip.AddrPortFrom(s.client, cluster.DrawPort()), s.wireHop(), nil
}

// elsewhere returns the error for a Docker Engine whose host network lacks the peer's card.
func (s *site) elsewhere() error {
	return &machine.UnsupportedError{Missing: s.run.agent.Name() +
		": its Docker Engine and the processes that ssh starts are in different network namespaces",
		Remedy: "--from remote"}
}

// remember records the namespaces of a path's container on the peer until the path is closed.
func (r *run) remember(p *path.Path, spots ...cluster.Spot) {
	r.boxed.Store(p, spots)
	p.Undo.Push("forget the "+spots[0].At.Where, func() error { r.boxed.Delete(p); return nil })
}

// spotsOf returns a path's namespaces on the peer, except those of the two cards.
func (r *run) spotsOf(p *path.Path) []cluster.Spot {
	known, ok := r.boxed.Load(p)
	if !ok {
		return nil
	}
	return known.([]cluster.Spot)
}

func has(devices []agent.Interface, a netip.Addr) bool {
	_, ok := cluster.Card(devices, a)
	return ok
}
