package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
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
	way, err := p.find(ctx, r, run)
	if err != nil {
		return nil, nil, err
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

// find finds the hops of a route. Over UDP, run runs the client, whose datagrams show them.
func (p *Program) find(ctx context.Context, r *route, run func() error) (*observe.Way, error) {
	if r.udp {
		return findUDP(ctx, r.from, r.dial(), run)
	}
	way, err := observe.Find(ctx, r.from.PID(), func() (uint16, error) {
		return empty(ctx, r.from, r.dial().String())
	})
	if err != nil {
		return nil, &unfollowed{err}
	}
	return way, nil
}

// udpScheme marks the address of a server whose requests, of a foreign client, are datagrams.
const udpScheme = "udp"

// overUDP makes HOST:PORT of the URLs of udp:// and dns://. It returns the names of their routes.
func overUDP(at []Address) (out []Address, names []string, err error) {
	for _, a := range at {
		u, err := url.Parse(a.URL)
		if err == nil && (u.Scheme == udpScheme || u.Scheme == "dns") {
			if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
				return nil, nil, fmt.Errorf("%s: with --client, the client says what it asks for: give "+
					"udp://%s", a.Name, printable.Line(u.Host))
			}
			a.URL = u.Host
			if u.Scheme == "dns" {
				a.URL = withPort(u, "53")
			}
			names = append(names, a.Name)
		}
		out = append(out, a)
	}
	return out, names, nil
}

// follow runs the client, and follows its requests if v has a trace. Otherwise it captures at the
// client's device only, which shows how long they take.
func (p *Program) follow(ctx context.Context, r *route, way *observe.Way, v *sample.Visit) error {
	run := func() error { return p.run(ctx, r, v) }
	if r.udp {
		defer func() { noteReplies(v, way.Replies, workload.CountDNSError) }()
	}
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
