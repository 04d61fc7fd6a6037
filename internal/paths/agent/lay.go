package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
)

// Laid is a route on an agent's machine. The agent removes it when it ends, at the latest.
type Laid struct {
	To  netip.Prefix `json:"to"`
	Via netip.Addr   `json:"via"` // a neighbour
}

// Router adds routes on an agent's machine, until its Engine is closed.
type Router interface {
	// Lay adds a route. It needs CAP_NET_ADMIN.
	Lay(l Laid) error
	// Lift removes a route that Lay added. A missing one is not an error.
	Lift(l Laid) error
}

var errNoRouter = errors.New("this agent cannot add routes")

type layRequest struct {
	Laid
	Lift bool `json:"lift,omitempty"`
}

// Lay adds a route on the agent's machine. The caller calls lift.
func (a *Agent) Lay(ctx context.Context, l Laid) (lift func() error, err error) {
	lift = func() error {
		_, err := a.ask(context.Background(), request{Lay: &layRequest{l, true}}, 0)
		if a.Err() != nil {
			return nil //nolint:nilerr // the agent removes it when it ends
		}
		return err
	}
	// Without ctx, because a route that the agent adds must be removed.
	if _, err := a.ask(context.WithoutCancel(ctx), request{Lay: &layRequest{l, false}}, 0); err != nil {
		return nil, errors.Join(err, lift())
	}
	return lift, nil
}

func (o layRequest) check() error {
	if !o.To.IsValid() || o.To != o.To.Masked() || o.To.Bits() == 0 || !o.Via.IsValid() ||
		o.Via.Is4() != o.To.Addr().Is4() {
		return fmt.Errorf("%w: %s via %s is not a route", errNonsense, o.To, o.Via)
	}
	return nil
}

func (s *server) lay(o layRequest) error {
	r := s.config.Router
	switch {
	case r == nil:
		return errNoRouter
	case o.Lift:
		return r.Lift(o.Laid)
	}
	return r.Lay(o.Laid)
}
