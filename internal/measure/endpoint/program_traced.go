package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// try runs the client once over a route. It returns what packets showed of its exchanges or, if
// requests are followed, the processes on their way.
func (p *Program) try(ctx context.Context, name string, r *route,
	facts map[string]string) (e *sample.Evidence, hops []string, err error) {
	run := func() error { return p.run(ctx, r, &sample.Visit{}) }
	hops = []string{}
	if p.ways == nil {
		e, err = exchanges(ctx, r.from, r.dial().String(), facts, run)
		return e, hops, err
	}
	way, err := observe.Find(ctx, r.from.PID(), func() (uint16, error) {
		return empty(ctx, r.from, r.dial().String())
	})
	if err != nil {
		return nil, nil, &unfollowed{err}
	}
	way.Slots, p.ways[name] = parts, way
	if _, err := way.Settle(func() ([]tokens.Exchange, error) { return nil, run() }); err != nil {
		return nil, nil, err
	}
	for _, h := range slices.Backward(way.Hops()) {
		hops = append(hops, h.Process)
	}
	return nil, hops, nil
}

// follow runs the client, and follows its requests if v has a trace. Otherwise it captures at the
// client's device only, which shows how long they take.
func (p *Program) follow(ctx context.Context, r *route, way *observe.Way, v *sample.Visit) error {
	run := func() error { return p.run(ctx, r, v) }
	if v.Trace != nil {
		return follow(way, v, func() ([]tokens.Exchange, error) { return nil, run() })
	}
	all, err := way.Ask(run)
	if err != nil {
		return err
	}
	return noteTimes(v, all)
}

// forget closes ways.
func forget(ways map[string]*observe.Way) error {
	var errs []error
	for name, w := range ways {
		if err := w.Close(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
