package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
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
	from    *vantage.Vantage
	way     *observe.Way
	replies tokens.Replies // of the last requests
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
		q.names, q.routes[a.Name] = append(q.names, a.Name), &followed{speaker: s, from: a.place()}
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
		t, err := r.few(ctx)
		if err == nil {
			r.way, err = r.find(ctx, t.remote)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
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
		if !r.udp() {
			q.servers.find(ctx, q.Locate, name, t.remote, r.from, facts)
		}
		p := sample.Path{Route: name, From: sample.FromHere, On: sample.OnEndpoint, Dial: t.remote,
			Hops: []string{}, Facts: facts, Built: time.Since(began).Seconds(),
			Frames: r.way.Frames, Steered: r.way.Steered}
		for _, h := range slices.Backward(r.way.Hops()) {
			p.Hops = append(p.Hops, h.Process)
		}
		q.facts[name] = p
	}
	return nil
}

// few makes a request, and a few more if their replies are lost.
func (r *followed) few(ctx context.Context) (*dialogue, error) {
	t, end, err := r.opened(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for range mostUnanswered {
		err = t.ask(ctx)
		if ctx.Err() != nil {
			return t, context.Cause(ctx)
		}
		if !errors.Is(err, errLost) {
			return t, r.native(ctx, t, err)
		}
	}
	return t, fmt.Errorf("%d queries, each of them with %w", mostUnanswered, err)
}

func (r *followed) udp() bool {
	_, is := r.speaker.(*resolver)
	return is
}

// find finds the hops to a server.
func (r *followed) find(ctx context.Context, remote string) (*observe.Way, error) {
	to, err := netip.ParseAddrPort(remote)
	if err != nil {
		return nil, &unfollowed{errors.New("a Unix socket: no packet goes there")}
	}
	if r.udp() {
		return findUDP(ctx, r.from, to, func() error {
			_, err := r.few(ctx)
			return err
		})
	}
	way, err := observe.Find(ctx, r.from.PID(), func() (uint16, error) {
		return empty(ctx, r.from, remote)
	})
	if err != nil {
		return nil, &unfollowed{err}
	}
	return way, nil
}

// findUDP finds the hops to which do sends datagrams from a place.
func findUDP(ctx context.Context, from *vantage.Vantage, to netip.AddrPort,
	do func() error) (*observe.Way, error) {
	way, unseen, err := observe.FindUDP(ctx, from.PID(), to, func() (net.Conn, error) {
		c, _, err := from.Dial(ctx, "udp", to.String())
		return c, err
	}, do)
	if unseen != nil {
		return nil, &unfollowed{unseen}
	}
	return way, err
}

// settling is how long requests are made to prove a route's hops.
const settling = 50 * time.Millisecond

// unfollowed means that the hops of a route were not found.
type unfollowed struct{ err error }

func (u *unfollowed) Error() string {
	if errors.Is(u.err, observe.ErrUnseen) {
		return "no process of this machine receives its requests, so they cannot be followed"
	}
	return whyUnseen(u.err)
}

func (u *unfollowed) Unwrap() error { return u.err }

func (u *unfollowed) Hint() string {
	switch {
	case errors.Is(u.err, observe.ErrUnseen):
		return "run toll where the server runs; toll run and toll sql compare routes to any server"
	case errors.Is(u.err, unix.EPERM), errors.Is(u.err, unix.EACCES):
		return remedy.AsRoot("toll trace …")
	}
	return ""
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
	errors := workload.CountHTTPStatus
	if r.udp() {
		errors = workload.CountDNSError
	}
	defer func() { noteReplies(v, r.replies, errors) }()
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

// opened opens a connection, whose requests end with ctx. The caller calls end.
func (r *followed) opened(ctx context.Context) (t *dialogue, end func(), err error) {
	if t, err = r.open(ctx); err != nil {
		return nil, nil, err
	}
	if t.stop == nil {
		return t, t.close, nil
	}
	over := make(chan struct{})
	stopped := context.AfterFunc(ctx, func() {
		defer close(over)
		t.stop()
	})
	return t, func() {
		if !stopped() { // before the file descriptor is closed
			<-over
		}
		t.close()
	}, nil
}

// ask makes the requests of a visit and records their times in v, unless it is nil.
func (r *followed) ask(ctx context.Context, l sample.Load, v *sample.Visit) ([]tokens.Exchange,
	error) {
	t, end, err := r.opened(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { end() }()
	defer func() { r.replies = t.replies }()
	connections := 1
	// once makes a request, over a new connection if the server has ended the last one.
	once := func() (x tokens.Exchange, err error) {
		if t.spent {
			next, endNext, err := r.opened(ctx)
			if err != nil {
				return x, err
			}
			end()
			next.replies, next.later = t.replies, true
			t, end = next, endNext
			connections++
		}
		sent := time.Now()
		err = t.ask(ctx)
		return tokens.Exchange{Local: t.local, Sent: sent.UnixNano(), Read: time.Now().UnixNano()}, err
	}
	for warm := time.Now().Add(seconds(l.Warmup)); time.Now().Before(warm); {
		if _, err := once(); err != nil && !errors.Is(err, errLost) && !errors.Is(err, errSpent) {
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
	t.replies.Unanswered = 0
	clear(t.replies.Errors)
	all := make([]tokens.Exchange, 0, mostAsked)
	began := time.Now()
	for until := began.Add(seconds(l.Window)); len(all) < mostAsked; {
		if len(all) > 0 && !time.Now().Before(until) {
			break
		}
		x, err := once()
		switch {
		case errors.Is(err, errSpent),
			errors.Is(err, errLost) && (len(all) > 0 || t.replies.Unanswered < mostUnanswered):
			continue
		case err != nil:
			return nil, errors.Join(context.Cause(ctx), err)
		}
		all = append(all, x)
	}
	took := time.Since(began)
	tokens.Slot(all, parts)
	if v == nil {
		return all, nil
	}
	v.Client = sample.Party{Window: took.Seconds(), Connections: connections}
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
