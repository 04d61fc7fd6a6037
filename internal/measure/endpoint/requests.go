package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Requests makes requests over routes to a server that runs, one at a time, and follows them
// through the kernel where a visit is traced.
type Requests struct {
	Locate  Locate // nil: unknown
	names   []string
	routes  map[string]*followed
	facts   map[string]sample.Path
	servers servers
}

type followed struct {
	speaker
	from *vantage.Vantage
	way  *observe.Way
}

// newRequests parses the addresses; it does not connect.
func newRequests(at []Address, password string) (*Requests, error) {
	q := &Requests{routes: map[string]*followed{}, facts: map[string]sample.Path{},
		servers: servers{}}
	for _, a := range at {
		s, err := speakerOf(a, password)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		q.names, q.routes[a.Name] = append(q.names, a.Name), &followed{s, a.place(), nil}
	}
	return q, nil
}

// Names returns the routes' names in order.
func (q *Requests) Names() []string { return q.names }

// Paths describes the routes after Check.
func (q *Requests) Paths() []sample.Path { return paths(q.names, q.facts) }

// Close forgets the routes.
func (q *Requests) Close() error {
	var errs []error
	for _, r := range q.routes {
		if r.way != nil {
			errs = append(errs, r.way.Close())
		}
	}
	return errors.Join(errs...)
}

// Check makes a request over each route, and finds its hops.
func (q *Requests) Check(ctx context.Context) error {
	for _, name := range q.names {
		began, r := time.Now(), q.routes[name]
		t, err := r.open(ctx)
		if err == nil {
			err = t.ask(ctx)
		}
		if t != nil {
			t.close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if r.way, err = observe.Find(ctx, r.from.PID(), func() (uint16, error) {
			if _, err := netip.ParseAddrPort(t.remote); err != nil {
				return 0, errors.New("a Unix socket: no packet goes there")
			}
			return empty(ctx, r.from, t.remote)
		}); err != nil {
			return fmt.Errorf("%s: %w", name, &unfollowed{err})
		}
		if _, err := r.way.Settle(func() ([]tokens.Exchange, error) {
			return r.ask(ctx, sample.Load{Window: settling.Seconds()}, nil)
		}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		facts := map[string]string{"url": t.remote, "asks": r.words(),
			familyFact: family(t.remote)}
		if t.server != "" {
			facts["server"] = t.server
		}
		if from := elsewhere(r.from); from != "" {
			facts["from"] = from
		}
		q.servers.find(ctx, q.Locate, name, t.remote, r.from, facts)
		p := sample.Path{Route: name, From: sample.FromHere, On: sample.OnEndpoint, Dial: t.remote,
			Hops: []string{}, Facts: facts, Built: time.Since(began).Seconds()}
		for _, h := range slices.Backward(r.way.Hops()) {
			p.Hops = append(p.Hops, h.Process)
		}
		q.facts[name] = p
	}
	return nil
}

// settling is how long requests are made to prove a route's hops.
const settling = 50 * time.Millisecond

// unfollowed means that the hops of a route were not found.
type unfollowed struct{ err error }

func (u *unfollowed) Error() string {
	if errors.Is(u.err, observe.ErrUnseen) {
		return "no process of this machine accepts its connections, so its requests cannot be followed"
	}
	return whyUnseen(u.err)
}

func (u *unfollowed) Unwrap() error { return u.err }

func (u *unfollowed) Hint() string {
	if errors.Is(u.err, observe.ErrUnseen) {
		return "run toll where the server runs; toll run and toll sql compare routes to any server"
	}
	return "sudo toll trace …"
}

// parts is the number of slices of a visit.
const parts = 10

// mostAsked bounds the requests of a visit, all of which are followed.
const mostAsked = 15_000

// Visit makes requests over a connection for the window, after the warm-up. If v has a trace, it
// follows them, with the captures that its state says.
func (q *Requests) Visit(ctx context.Context, cell sample.Cell, l sample.Load,
	v *sample.Visit) error {
	r := q.routes[cell.Route]
	if v.Trace == nil {
		_, err := r.ask(ctx, l, v)
		return err
	}
	return follow(r.way, v, func() ([]tokens.Exchange, error) { return r.ask(ctx, l, nil) })
}

// follow follows the exchanges that do returns, with the captures that the state of v's trace says.
func follow(way *observe.Way, v *sample.Visit, do func() ([]tokens.Exchange, error)) error {
	copies, state := 1, v.Trace.State
	if state == sample.TracedThrice {
		copies = sample.TraceCopies
	}
	t, err := way.Follow(copies, do)
	if err != nil {
		return err
	}
	v.Trace = t
	v.Trace.State = state
	return nil
}

// ask makes the requests of a visit and records their times in v, unless it is nil.
func (r *followed) ask(ctx context.Context, l sample.Load, v *sample.Visit) ([]tokens.Exchange,
	error) {
	t, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if t.stop != nil {
		over := make(chan struct{})
		stopped := context.AfterFunc(ctx, func() {
			defer close(over)
			t.stop()
		})
		defer func() {
			if !stopped() { // before the file descriptor is closed
				<-over
			}
		}()
	}
	for warm := time.Now().Add(seconds(l.Warmup)); time.Now().Before(warm); {
		if err := t.ask(ctx); err != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
	all := make([]tokens.Exchange, 0, mostAsked)
	began := time.Now()
	for until := began.Add(seconds(l.Window)); len(all) < mostAsked; {
		sent := time.Now()
		if len(all) > 0 && !sent.Before(until) {
			break
		}
		if err := t.ask(ctx); err != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
		all = append(all, tokens.Exchange{Local: t.local, Sent: sent.UnixNano(),
			Read: time.Now().UnixNano()})
	}
	took := time.Since(began)
	tokens.Slot(all, parts)
	if v == nil {
		return all, nil
	}
	v.Client = sample.Party{Window: took.Seconds(), Connections: 1}
	v.Server = sample.Party{Window: took.Seconds()}
	return all, noteTimes(v, all)
}

// noteTimes records the times of requests in v.
func noteTimes(v *sample.Visit, all []tokens.Exchange) (err error) {
	h := sample.NewHistogram()
	v.Client.Trips, v.Slices = int64(len(all)), slicesOf(all, h)
	v.Latency, err = sample.Encode(h)
	return err
}

// slicesOf returns the slices of a visit's requests, and adds their times to h.
func slicesOf(all []tokens.Exchange, h *hdrhistogram.Histogram) *sample.Slices {
	out := &sample.Slices{}
	for i := 0; i < len(all); {
		slot, sum := all[i].Slot, 0.0
		var took []float64
		for ; i < len(all) && all[i].Slot == slot; i++ {
			d := time.Duration(all[i].Read - all[i].Sent)
			record(h, d)
			took = append(took, d.Seconds())
			sum += d.Seconds()
		}
		out.Slots = append(out.Slots, slot)
		out.Rates = append(out.Rates, float64(len(took))/sum)
		out.Medians = append(out.Medians, median(took))
	}
	return out
}

// Asks describes the requests to addresses: "GET /health, PING". Those of a server that is asked
// what it speaks are left out.
func Asks(at []Address) string {
	var out []string
	for _, a := range at {
		if s, err := speakerOf(a, ""); err == nil && strings.Contains(a.URL, "://") &&
			!slices.Contains(out, s.words()) {
			out = append(out, s.words())
		}
	}
	return cmp.Or(strings.Join(out, ", "), "requests")
}
