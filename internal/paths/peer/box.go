package peer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// clientContainer begins the name of the place of a client in a container there.
const clientContainer = "client container on "

// client places the client of a path to this machine's Docker Engine: outside of every container
// there, or in one that the engine there makes. The hops are those from it to this machine's card.
func (r *run) client(ctx context.Context, p *path.Path, dial netip.AddrPort, segment *docker.Segment) (path.Place, []path.Hop, error) {
	s := &site{ctx: ctx, run: r, path: p}
	if err := s.begin(); err != nil {
		return nil, nil, err
	}
	wire := s.wireHop()
	if p.Spec.From != mode.FromRemoteContainer {
		return r.agent, []path.Hop{wire}, nil
	}
	order := agent.Box{Name: clientContainer + r.agent.Name()}
	on := "a user-defined bridge network of toll's, as by docker network create"
	switch {
	case segment != nil:
		order.LAN = &agent.LAN{Driver: segment.Driver, Kind: segment.Kind, Parent: s.there.Device, Subnet: segment.Subnet.String(), Addr: segment.Client.String()}
		on = "a user-defined " + segment.Driver + " network of toll's on " + s.there.Device + ", with the addresses of the server's"
	case p.Spec.Mode == mode.Host:
		order.Network, on = "host", "the peer's own"
	case p.Spec.Mode == mode.PublishDefault:
		order.Network, on = "bridge", "Docker's default bridge network" // as Docker names it
	}
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
		if err == nil && !slices.ContainsFunc(inside, func(d agent.Interface) bool { return has(d, s.client) }) {
			err = s.elsewhere()
		}
		return inner, []path.Hop{wire}, err
	}
	b, err := s.box(inner, segment != nil)
	if err != nil {
		return nil, nil, err
	}
	r.remember(p, b)
	own := path.Hop{Kind: mode.HopVeth, Name: b.device.Name, Where: inner.Name(), Read: inner.Read(agent.Counter{Device: &agent.Device{Name: b.device.Name}})}
	if segment != nil {
		own.Kind = mode.HopKind(segment.Driver)
		return inner, []path.Hop{own, wire}, nil
	}
	proto := "tcp"
	if p.Spec.UDP {
		proto = "udp"
	}
	masqueraded := &agent.NAT{Proto: proto, To: dial, Now: dial, From: b.addr, As: s.client}
	there := r.agent.Name()
	return inner, []path.Hop{
		own,
		{Kind: mode.HopBridge, Name: b.bridge, Where: there, Read: r.agent.Read(agent.Counter{Device: &agent.Device{Name: b.bridge, ForwardRx: true}})},
		{Kind: mode.HopSNAT, Name: fmt.Sprintf("%s → %s", b.addr, s.client), Where: there, Expect: path.Matches, Read: r.agent.Read(agent.Counter{NAT: masqueraded})},
		wire,
	}, nil
}

// box is a container there, on a bridge.
type box struct {
	agent        *agent.Agent // in the container
	device       agent.Interface
	addr         netip.Addr
	bridge, port string // of the peer: the bridge, and the outer end of the container's pair; "": on a card
}

// box finds a container's device, and on the peer the other end of its pair unless it is on a card.
func (s *site) box(inner *agent.Agent, onCard bool) (b box, err error) {
	b.agent = inner
	inside, err := inner.Interfaces(s.ctx, "")
	if err != nil {
		return b, err
	}
	for _, d := range inside {
		for _, p := range d.Addrs {
			if p.Addr().Is4() && !p.Addr().IsLoopback() {
				b.device, b.addr = d, p.Addr()
			}
		}
	}
	if !b.addr.IsValid() {
		return b, errors.New("the engine there gave the " + inner.Name() + " no IPv4 address")
	}
	if onCard {
		return b, nil
	}
	devices, err := s.run.agent.Interfaces(s.ctx, "")
	if err != nil {
		return b, err
	}
	i := slices.IndexFunc(devices, func(d agent.Interface) bool { return d.Index == b.device.Peer && d.Kind == b.device.Kind })
	if i < 0 || devices[i].Master == "" {
		return b, s.elsewhere()
	}
	b.bridge, b.port = devices[i].Master, devices[i].Name
	return b, nil
}

// elsewhere returns the error for an engine whose containers do not use the peer's card.
func (s *site) elsewhere() error {
	return &path.UnsupportedError{Missing: s.run.agent.Name() + ": its Docker Engine runs in another network namespace than what ssh starts there", Remedy: "--from remote"}
}

// remember records a path's container until the path is closed.
func (r *run) remember(p *path.Path, b box) {
	r.boxed.Store(p, b)
	p.Undo.Push("forget the "+b.agent.Name(), func() error { r.boxed.Delete(p); return nil })
}

// spotsOf returns a path's namespaces there other than those of the two cards.
func (r *run) spotsOf(p *path.Path) []spot {
	known, ok := r.boxed.Load(p)
	if !ok {
		return nil
	}
	b := known.(box)
	inside := spot{b.agent, agent.Spot{Where: b.agent.Name()}}
	if b.bridge == "" {
		return []spot{inside}
	}
	return []spot{
		inside,
		{r.agent, agent.Spot{Where: r.agent.Name(), Devices: []string{b.bridge, b.port}, To: []netip.Addr{b.addr}}},
	}
}

// spot is a network namespace, and the agent that reads it.
type spot struct {
	agent *agent.Agent
	at    agent.Spot
}

// has reports whether a device has an address.
func has(d agent.Interface, a netip.Addr) bool {
	return slices.ContainsFunc(d.Addrs, func(p netip.Prefix) bool { return p.Addr() == a })
}
