package peer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

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
