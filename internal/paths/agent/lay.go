package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

// Router adds routes on an agent's machine. Routes that were not removed end with the agent.
type Router interface {
	// Lay adds a route. It needs CAP_NET_ADMIN.
	Lay(l link.Laid) error
	// Lift removes a route that Lay added. It returns nil if the route does not exist.
	Lift(l link.Laid) error
}

var errNoRouter = errors.New("this agent cannot add routes")

type layRequest struct {
	link.Laid
	Lift bool `json:"lift,omitempty"`
}

// Lay adds a route on the agent's machine. The caller calls lift to remove it. If it does not, the
// agent removes the route when it exits.
func (a *Agent) Lay(ctx context.Context, l link.Laid) (lift func() error, err error) {
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
	if !o.Valid() {
		return fmt.Errorf("%w: %s by %s is not a route", errNonsense, o.To, o.Neighbour())
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
