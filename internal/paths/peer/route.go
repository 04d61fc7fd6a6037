package peer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// route adds a route on the peer to a network of this machine, through this machine's address on
// the card towards it, until the path is closed.
func (r *run) route(ctx context.Context, p *path.Path, to netip.Prefix) error {
	s := &site{ctx: ctx, run: r, path: p}
	if err := s.begin(); err != nil {
		return err
	}
	there := r.agent.Name()
	if s.there.Via.IsValid() {
		return &path.UnsupportedError{Missing: fmt.Sprintf(
			"router %s is between the two machines, and it has no route to a container's network",
			s.there.Via),
			Remedy: "--peer-dial with this machine's address in a network that both have; or publish"}
	}
	lift, err := r.agent.Lay(ctx, link.Laid{To: to, Via: s.server})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s via %s", to, s.server)
	p.Undo.Push("remove the route "+what+" of "+there, lift)
	got, err := r.agent.Route(ctx, to.Addr().Next())
	switch {
	case err != nil:
		return err
	case got.Via != s.server || got.Device != s.there.Device || got.Source != s.client:
		return &path.UnsupportedError{Missing: fmt.Sprintf(
			"%s has routing policies that send packets to %s over another device, %s", there, to,
			got.Device),
			Remedy: "ip rule there lists them; or publish"}
	}
	p.Facts["route of toll's on the peer"] = what
	return nil
}

// The peer briefly gets a route to these networks for documentation (RFC 5737 and 3849).
var nobodys = map[bool]netip.Prefix{false: netip.MustParsePrefix("192.0.2.0/24"),
	true: netip.MustParsePrefix("2001:db8::/64")}

// tryRoute tries once whether the peer accepts a route.
func (r *run) tryRoute(ctx context.Context, spec path.Spec) error {
	r.asking.Lock()
	defer r.asking.Unlock()
	six := spec.To.Six()
	if err, ok := r.tried[six]; ok {
		return err
	}
	p := &path.Path{Spec: spec, Facts: map[string]string{}}
	err := r.route(ctx, p, nobodys[six])
	err = errors.Join(err, p.Undo.Undo())
	if ctx.Err() != nil {
		return err
	}
	var u *path.UnsupportedError
	if errors.As(err, &u) {
		err = u // the caller adds the path
	}
	if r.tried == nil {
		r.tried = map[bool]error{}
	}
	r.tried[six] = err
	return err
}
