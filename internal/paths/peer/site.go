package peer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

type site struct {
	ctx  context.Context
	run  *run
	path *path.Path

	server, client netip.Addr     // addresses of this machine and of the peer
	there, here    link.Route     // from the peer to this machine, and back
	spots          []cluster.Spot // of the path, on the peer
	unwatched      []string       // machines with unreadable settings
}

func (s *site) begin() (err error) {
	if err := s.run.left(); err != nil {
		return err
	}
	if s.server, err = s.dialled(s.path.Spec.To.Six()); err != nil {
		return err
	}
	if s.there, err = s.run.agent.Route(s.ctx, s.server); err != nil {
		return &machine.UnsupportedError{Missing: fmt.Sprintf("the peer has no route to %s", s.server),
			Remedy: "--address with another address of this machine", Err: err}
	}
	if s.client = s.there.Source; !s.client.IsValid() {
		return fmt.Errorf("the peer has no address for packets to %s", s.server)
	}
	err = s.run.here.Do(func() (err error) { s.here, err = link.RouteTo(s.client); return err })
	if err != nil {
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"this machine has no route to the peer's address %s", s.client),
			Remedy: "--address with an address of this machine in a network that both have",
			Err:    err}
	}
	if s.there.Device == loopback || s.here.Device == loopback {
		return &machine.UnsupportedError{
			Missing: "the peer is this machine: packets between the two stay on its loopback device", Remedy: "--peer with another machine; or --on lab"}
	}
	if boot, _ := journal.BootID(); s.run.agent.Hello().Boot != boot {
		s.path.Machines = []path.Machine{s.run.agent}
	}
	return nil
}

const loopback = "lo"

// dialled returns this machine's address that the peer dials: the given one, the source of ssh's
// connection, or an address of the other family on the same card. A link-local IPv6 address, which
// names no route, stands for its card.
func (s *site) dialled(six bool) (netip.Addr, error) {
	at := s.run.peer.Address
	if !at.IsValid() {
		at = s.run.seen.Here.Addr()
	}
	if !at.IsValid() {
		return at,
			&machine.UnsupportedError{
				Missing: "this machine's address as seen by the peer cannot be determined",
				Remedy:  "--address with an address of this machine that the peer reaches"}
	}
	var own bool
	var others []netip.Addr
	err := s.run.here.Do(func() error {
		all, err := link.Survey()
		for _, d := range all {
			if !slices.ContainsFunc(d.Addrs, func(p netip.Prefix) bool {
				return p.Addr() == at.WithZone("")
			}) {
				continue
			}
			own = true
			for _, p := range d.Addrs {
				if a := p.Addr(); a.Is6() == six && a.IsGlobalUnicast() {
					others = append(others, a)
				}
			}
		}
		return err
	})
	switch {
	case err != nil:
		return at, err
	case !own && s.run.peer.Address.IsValid():
		return at, &machine.UnsupportedError{Missing: fmt.Sprintf(
			"this machine has no address %s", at),
			Remedy: "ip address lists them: --address with one that the peer reaches"}
	case !own:
		return at, &machine.UnsupportedError{Missing: fmt.Sprintf(
			"to the peer, ssh's connection comes from %s, which is not an address of this machine: NAT or another machine is between the two", at),
			Remedy: "--address with an address of this machine that the peer reaches directly"}
	case at.Is6() == six && !needsCard(at):
		return at, nil
	case s.run.peer.Address.IsValid():
		return at, &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the peer dials %s, which is %s", at, kindOf(at)),
			Remedy: "--to address or -4 for IPv4, --to address6 or -6 for IPv6; --address with this machine's address of that family"}
	}
	return s.beside(at, others, six)
}

// beside returns one of others, addresses of the wanted family on the card with the address at. The
// peer must reach it through the same card as at, from an address of that family.
func (s *site) beside(at netip.Addr, others []netip.Addr, six bool) (netip.Addr, error) {
	device := at.Zone() // the peer's: it reported the address
	if !needsCard(at) {
		known, err := s.run.agent.Route(s.ctx, at)
		if err != nil {
			return at, err
		}
		device = known.Device
	}
	for _, a := range others {
		w, err := s.run.agent.Route(s.ctx, a)
		if err == nil && w.Device == device && w.Source.IsGlobalUnicast() {
			return a, nil
		}
		if err := s.run.left(); err != nil {
			return a, err
		}
	}
	family := "IPv4"
	if six {
		family = "IPv6"
	}
	return at, &machine.UnsupportedError{Missing: fmt.Sprintf(
		"the peer reaches this machine at %[2]s, which is %[3]s, and on that wire the two machines have no other %[1]s addresses", family, at, kindOf(at)),
		Remedy: "--address with an " + family +
			" address of this machine that the peer reaches, or the other family"}
}

// needsCard reports whether the address is on a network of one card only, whose name must be known
// to use it. IPv4's link-local addresses have a route.
func needsCard(a netip.Addr) bool { return a.Is6() && a.IsLinkLocalUnicast() }

// kindOf says why a path does not use the address.
func kindOf(at netip.Addr) string {
	if needsCard(at) {
		return "link-local"
	}
	return "of the other address family"
}

func (s *site) native() error {
	here := local.Place{Space: s.run.here, Named: thisMachine}
	if s.path.Spec.To.Outside() {
		at := netip.AddrPortFrom(s.client, cluster.DrawPort())
		s.path.Servers = []path.Server{{Place: s.run.agent, Listen: at, Machine: s.run.agent}}
		s.path.Clients = []path.Client{{Place: here, Dial: at}}
		s.path.Hops = []path.Hop{s.wireHop()}
		return nil
	}
	port, err := local.FreePort(s.run.here, s.server, s.path.Spec.UDP)
	if err != nil {
		return err
	}
	at := netip.AddrPortFrom(s.server, port)
	s.path.Servers = []path.Server{{Place: here, Listen: at}}
	s.path.Clients = []path.Client{{Place: s.run.agent, Dial: at, Machine: s.run.agent}}
	s.path.Hops = []path.Hop{s.wireHop()}
	return nil
}

func (s *site) between() string { return s.run.agent.Name() + " and " + thisMachine }

// wireHop returns the hop of the wire. It counts what both cards count.
func (s *site) wireHop() path.Hop {
	out := s.path.Spec.To.Outside()
	return path.Hop{Kind: mode.HopWire, Name: s.there.Device + "⇄" + s.here.Device,
		Where: s.between(),
		Read: cluster.Both(s.run.agent.Read(agent.Counter{
			Device: &agent.Device{Name: s.there.Device, ForwardRx: out}}),
			local.Device(s.run.here, s.here.Device, !out))}
}

// Finish completes the path after its recipe.
func (s *site) Finish() error {
	if err := s.describe(); err != nil {
		return err
	}
	wheres := []string{thisMachine, s.run.agent.Name(), s.between()}
	path.Share(s.path, func(h path.Hop) bool { return slices.Contains(wheres, h.Where) })
	return s.inspectable()
}

func (s *site) describe() error {
	family := "IPv6"
	if s.server.Is4() {
		family = "IPv4"
	}
	s.path.Facts["peer"] = fmt.Sprintf("%s (%s), %s", s.run.peer.Host.Name, s.client,
		s.run.agent.Hello().Machine())
	s.path.Facts["address family"] = family
	s.path.Facts["route there"] = wayInWords(s.client, s.there, s.server)
	s.path.Facts["route back"] = wayInWords(s.server, s.here, s.client)
	err := local.Describe(s.path, s.run.here,
		[]local.Described{{Space: s.run.here, Where: thisMachine,
			Devices: []string{s.here.Device}}})
	if err != nil {
		return err
	}
	if err := local.Cards(s.path, s.run.here, thisMachine, s.here.Device, true); err != nil {
		return err
	}
	there := cluster.End{Where: s.run.agent.Name(), Agent: s.run.agent}
	there.Card.Name, there.Wire = s.there.Device, s.there.Device
	if there.Devices, err = s.run.agent.Interfaces(s.ctx, ""); err != nil {
		return err
	}
	there.AddLinks(s.path)
	return there.AddCards(s.ctx, s.path)
}

func wayInWords(from netip.Addr, w link.Route, to netip.Addr) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s by %s", from, w.Device)
	if w.Via.IsValid() {
		fmt.Fprintf(&b, " via %s", w.Via)
	}
	fmt.Fprintf(&b, " to %s", to)
	return b.String()
}

// inspectable sets the path's Inspect, which reads both cards and the settings of each machine that
// decide the path. The path's facts name machines whose settings toll may not read.
func (s *site) inspectable() error {
	to := []netip.Addr{s.server, s.client}
	for _, c := range s.path.Clients { // the peer may have another route to a container's address
		if a := c.Dial.Addr(); a.IsValid() && !slices.Contains(to, a) {
			to = append(to, a)
		}
	}
	reads := []func() ([]path.Setting, error){
		func() ([]path.Setting, error) {
			return local.Inspect([]local.Inspected{
				{Space: s.run.here, Where: thisMachine, Devices: []string{s.here.Device}, To: to}})
		},
		func() ([]path.Setting, error) {
			return s.run.agent.Inspect(agent.Spot{
				Where: s.run.agent.Name(), Devices: []string{s.there.Device}, To: to})
		},
	}
	names := []string{thisMachine, s.run.agent.Name()}
	for _, x := range s.spots {
		reads = append(reads, func() ([]path.Setting, error) { return x.Agent.Inspect(x.At) })
		names = append(names, x.At.Where)
	}
	var watched []func() ([]path.Setting, error)
	for i, read := range reads {
		_, err := read()
		switch {
		case err == nil:
			watched = append(watched, read)
		case notPermitted(err):
			s.unwatched = append(s.unwatched, names[i])
		default:
			return err
		}
	}
	if len(s.unwatched) > 0 {
		s.path.Facts["settings not watched on"] = strings.Join(s.unwatched, ", ") + ": needs root"
	}
	if len(watched) == 0 {
		return nil
	}
	s.path.Inspect = func() ([]path.Setting, error) { return cluster.AtOnce(watched) }
	return nil
}

// route adds a route on the peer to one of this machine's networks, until the path is closed. Its
// gateway is this machine's address on the card towards the peer. With direct the route has no
// gateway, only the peer's card.
func (r *run) route(ctx context.Context, p *path.Path, to netip.Prefix, direct bool) error {
	s := &site{ctx: ctx, run: r, path: p}
	if err := s.begin(); err != nil {
		return err
	}
	there, instead := r.agent.Name(), "publish"
	if p.Spec.To.Outside() {
		instead = "bridge"
	}
	if s.there.Via.IsValid() {
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"router %s is between the two machines, and it has no route to the containers' network",
			s.there.Via),
			Remedy: "--address with this machine's address in a network that both have; or " +
				instead}
	}
	l, dial := link.Laid{To: to, Via: s.server}, to.Addr()
	if direct {
		l = link.Laid{To: to, Device: s.there.Device}
	}
	if !to.IsSingleIP() {
		dial = dial.Next()
	}
	lift, err := r.agent.Lay(ctx, l)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s via %s", to, l.Neighbour())
	p.Undo.Push("remove the route "+what+" of "+there, lift)
	got, err := r.agent.Route(ctx, dial)
	switch {
	case err != nil:
		return err
	case got.Via != l.Via || got.Device != s.there.Device || !direct && got.Source != s.client:
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"%s has routing rules that send packets to %s over another device, %s", there, to,
			got.Device),
			Remedy: "ip rule lists them there; or " + instead}
	}
	p.Facts["route of toll's on the peer"] = what
	return nil
}

// nobodys has a network for documentation of each family (RFC 5737 and 3849). As a trial, the peer
// briefly gets a route to it.
var nobodys = map[bool]netip.Prefix{false: netip.MustParsePrefix("192.0.2.0/24"),
	true: netip.MustParsePrefix("2001:db8::/64")}

type routeTrial struct{ six, direct bool }

// tryRoute returns an error if toll cannot add a route on the peer. It tries once for each kind of
// route.
func (r *run) tryRoute(ctx context.Context, spec path.Spec, direct bool) error {
	r.asking.Lock()
	defer r.asking.Unlock()
	of := routeTrial{spec.To.Six(), direct}
	if err, ok := r.tried[of]; ok {
		return err
	}
	p := &path.Path{Spec: spec, Facts: map[string]string{}}
	err := r.route(ctx, p, nobodys[of.six], direct)
	err = errors.Join(err, p.Undo.Undo())
	if ctx.Err() != nil {
		return err
	}
	var u *machine.UnsupportedError
	if errors.As(err, &u) {
		err = u // without the path, which the caller adds
	}
	if r.tried == nil {
		r.tried = map[routeTrial]error{}
	}
	r.tried[of] = err
	return err
}
