package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Visit collects what is seen of a visit to a route.
type Visit struct {
	w       *Watch
	route   *route
	began   time.Time
	strains []strain // of the hops
	from    uint32   // the last mark before it
	broken  error    // why the other machine's observer said nothing
	there   account  // of the other machine's observer
	clock   tokens.Clock

	mu    sync.Mutex
	asked []*asked
	last  time.Time // when the last response had come
}

type asked struct {
	tokens.Asked
	how   tokens.How
	end   time.Duration // from the request to the response's end
	chain []tokens.Seen // of the route's hops; those that are not yet found are empty
	found []bool
}

// Begin starts a visit, after Start. Visits follow each other. It returns nil if the route is not
// followed.
func (w *Watch) Begin(ctx context.Context, name string) (*Visit, error) {
	r := w.routes[name]
	if r == nil {
		return nil, nil
	}
	v := &Visit{w: w, route: r, from: w.base + w.marks.Load()}
	if r.distant() {
		if _, v.broken = w.far.do(ctx, order{Begin: name}); v.broken != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if w.stale {
		w.stale = false
		if err := errors.Join(w.halt(), w.start()); err != nil {
			return nil, fmt.Errorf("watch tokens: %w", err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holes {
		if err := w.enlarge(); err != nil {
			return nil, fmt.Errorf("watch tokens: %w", err)
		}
	}
	w.realtime = clock.Real()
	if err := w.drain(); err != nil {
		return nil, err
	}
	for _, h := range r.hops {
		w.log.Take(h.place())
	}
	w.log.Forget()
	if _, err := w.lost(nil); err != nil {
		return nil, err
	}
	for _, h := range r.hops {
		v.strains = append(v.strains, strainOf(h))
	}
	v.began = time.Now()
	v.last = v.began
	return v, nil
}

// enlarge opens larger rings in place of those that lost something, if there is memory for them.
// The log begins anew, because it lacks the rest of connections whose packets were lost.
func (w *Watch) enlarge() error {
	var errs []error
	if was, has := w.writes, w.writesOf.Times; was != nil {
		w.writes, _ = larger(max(has, w.grownWrites), has, func(times int) (*writes.Recorder, error) {
			if times == has {
				return was, nil
			}
			return w.record(times)
		})
		if w.writes != was {
			w.unread = 0
			errs = append(errs, was.Close())
		}
		w.grownWrites = w.writesOf.Times
	}
	errs = append(errs, atOnce(len(w.rings), func(i int) (err error) {
		r := w.rings[i]
		w.rings[i], _ = larger(max(r.times, w.grown[r.space]), r.times, func(times int) (*ring, error) {
			if times == r.times {
				return r, nil
			}
			return openIn(w.spaces[r.space], r.space, r.size, times, r.ports...)
		})
		if w.rings[i] != r {
			err = r.Close()
		}
		return err
	}))
	for _, r := range w.rings {
		w.grown[r.space] = r.times
	}
	w.newLog()
	return errors.Join(errs...)
}

// crosses reports whether connections of the route are in a namespace.
func (r *route) crosses(space int) bool {
	return space == r.client.Space || slices.ContainsFunc(r.hops, func(h hop) bool {
		return h.space == space
	})
}

// Add adds a response that the client has read.
func (v *Visit) Add(r *openai.Response) {
	n := len(v.route.hops)
	a := &asked{end: r.End, chain: make([]tokens.Seen, n), found: make([]bool, n),
		Asked: tokens.Asked{Mark: r.Mark, Local: r.Local.Port(), Asked: r.Asked, Ends: r.Ends,
			Sent: r.Began.UnixNano(), Texts: r.Texts}}
	for _, t := range r.Arrivals {
		a.Read = append(a.Read, a.Sent+int64(t))
	}
	if !v.w.blind {
		a.Arrived = func(offset int64) (int64, bool) {
			return v.w.log.Arrived(v.route.client, a.Local, a.Sent, offset)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = append(v.asked, a)
	v.last = time.Now()
}

// End waits for what the captures still hold, for a second at most, and returns what was seen.
func (v *Visit) End(ctx context.Context) (*sample.Evidence, error) {
	const longest = time.Second
	moved := clockMoved(v.w.realtime)
	var stopped []float64
	for _, s := range v.strains {
		stopped = append(stopped, s.stopped())
	}
	pools := make([][]tokens.Seen, len(v.route.hops))
	if v.route.distant() && v.broken == nil {
		pools, v.broken = v.fetch(ctx)
		stopped = v.there.stopped
	}
	if v.broken != nil {
		return v.unwatched(), context.Cause(ctx)
	}
	for until := time.Now().Add(longest); ; {
		last := ctx.Err() != nil || time.Now().After(until)
		done, err := v.match(pools, last)
		if err != nil {
			return nil, err
		}
		if done || last {
			break
		}
		time.Sleep(capture.Retire / 2)
	}
	v.leaveOut(pools)
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	lost, err := v.w.lost(v.route.crosses)
	if err != nil {
		return nil, err
	}
	e := v.evidence()
	passed := v.route.passed()
	e.Lost, e.Others = lost+v.there.lost, v.there.others
	for _, s := range pools[passed[0]] {
		if !v.w.ours(s.Mark) { // a relay may have made ours twice
			e.Others++
		}
	}
	e.ClockMoved = max(moved, v.there.moved)
	e.Window = v.last.Sub(v.began).Seconds()
	for k, i := range passed {
		e.Hops[k].Stopped = stopped[i]
	}
	v.w.log.Forget()
	return e, nil
}

// unwatched returns the evidence of a visit of which the other machine's observer said nothing.
func (v *Visit) unwatched() *sample.Evidence {
	e := &sample.Evidence{Responses: len(v.asked), Broken: v.broken.Error()}
	for _, i := range v.route.passed() {
		e.Hops = append(e.Hops, v.route.hops[i].about)
	}
	for _, a := range v.asked {
		e.Tokens += len(a.Read)
	}
	return e
}

// fetch returns what the hops on the other machine saw, by this machine's clock. Requests over TLS
// it adds to those that were asked.
func (v *Visit) fetch(ctx context.Context) (pools [][]tokens.Seen, err error) {
	hops := v.route.hops
	o := endOrder{From: v.from, To: v.from, Texts: textsOf(v.asked)}
	if len(v.asked) > 0 {
		o.To = v.w.base + v.w.marks.Load()
	}
	v.there, err = v.w.far.fetch(ctx, len(hops), o)
	if err != nil {
		return nil, err
	}
	time.Sleep(2 * capture.Retire) // until blocks that are not full are passed on
	v.w.mu.Lock()
	err = v.w.drain()
	v.w.mu.Unlock()
	if err != nil {
		return nil, err
	}
	sealed, err := v.sealedThere(ctx)
	if err != nil {
		return nil, err
	}
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	last := len(hops) - 1
	var crossed []tokens.Crossing
	for k, a := range v.asked {
		if i, _ := tokens.Pair(v.there.pools[last], &a.Asked); i >= 0 {
			crossed = append(crossed, tokens.Crossings(&v.there.pools[last][i], &a.Asked)...)
		}
		for _, s := range sealed[k] {
			if s.Hop == last {
				crossed = append(crossed, tokens.Crossings(&s.Seen, &a.Asked)...)
			}
		}
	}
	pools = make([][]tokens.Seen, len(hops))
	var ok bool
	if v.clock, ok = tokens.Compare(crossed); !ok {
		return pools, nil // nothing is known of any response
	}
	for i, all := range v.there.pools {
		for _, s := range all {
			pools[i] = append(pools[i], v.clock.Cross(s))
		}
	}
	for k, all := range sealed {
		for _, s := range all {
			v.asked[k].take(s.Hop, v.clock.Cross(s.Seen), tokens.ByID)
		}
	}
	return pools, nil
}

// sealedThere returns what those hops on the other machine saw to which requests came over TLS, for
// each request.
func (v *Visit) sealedThere(ctx context.Context) ([][]farSeen, error) {
	out := make([][]farSeen, len(v.asked))
	if !v.route.hops[len(v.route.hops)-1].sealed {
		return out, nil
	}
	for k, a := range v.asked {
		v.w.mu.Lock()
		base, ok := v.w.log.Base(v.route.client, a.Local, a.Sent)
		v.w.mu.Unlock()
		if !ok {
			continue
		}
		n, err := v.w.far.do(ctx, order{Bytes: &bytesOrder{a.Mark, base, a.Asked.Asked, a.Ends,
			a.Texts}})
		if err != nil {
			return nil, err
		}
		for _, s := range n.Seen {
			if s.Hop < len(v.route.hops) && len(s.Events) == len(a.Ends) {
				out[k] = append(out[k], s)
			}
		}
	}
	return out, nil
}

// clockMoved returns by how much CLOCK_REALTIME was set since clock.Real returned ahead, in s.
func clockMoved(ahead int64) float64 {
	moved := time.Duration(clock.Real() - ahead)
	const unsure = 100 * time.Microsecond // the two clocks are not read at the same instant
	if moved.Abs() <= unsure {
		return 0
	}
	return moved.Abs().Seconds()
}

func (v *Visit) evidence() *sample.Evidence {
	e := &sample.Evidence{Responses: len(v.asked), Writes: true, HopsUnsure: v.route.unsure,
		Broken: v.route.forked()}
	for _, i := range v.route.passed() {
		e.Hops = append(e.Hops, v.route.hops[i].about)
	}
	for k, i := range v.route.passed() {
		for _, a := range v.asked {
			if a.found[i] {
				e.Hops[k].Unread = ""
			}
			if coding := a.chain[i].Coding; coding != "" {
				e.Hops[k].Unread = "compresses its responses with " +
					printable.Words(printable.Limit(coding, longestCoding))
			}
		}
	}
	sums := tokens.NewSums(len(e.Hops) - 1)
	seen := 0.0
	for _, a := range v.asked {
		chain := v.chainOf(a)
		if chain == nil {
			e.Tokens += len(a.Read)
			continue
		}
		seen++
		e.End += a.end.Seconds()
		switch a.how {
		case tokens.ByID:
			e.ByID++
		case tokens.BySeed:
			e.BySeed++
		case tokens.ByText:
			e.ByText++
		}
		rows, missed := tokens.Divide(chain, &a.Asked)
		e.Tokens, e.Matched = e.Tokens+len(rows)+missed, e.Matched+len(rows)
		if v.route.distant() {
			tokens.BothWays(rows)
		}
		sums.Add(rows, tokens.Held(chain))
		sums.AddWaits(&chain[0])
		e.Writes = e.Writes && chain[0].Wrote != nil
	}
	if e.Matched > 0 {
		sums.Note(e)
	}
	if v.route.distant() {
		v.bothWays(e)
	}
	e.End /= max(1, seen)
	return e
}

// bothWays leaves out the part that is in the wire's, and notes how the machines' clocks differ.
func (v *Visit) bothWays(e *sample.Evidence) {
	e.Ahead, e.Unsure = v.clock.Ahead().Seconds(), v.clock.Unsure.Seconds()
	last := len(e.Parts)
	if last == 0 {
		return
	}
	if e.ClientInWire = v.w.blind; v.w.blind {
		last--
	}
	e.Parts, e.Response.Last = e.Parts[1:last], e.Response.Last[1:last]
}
