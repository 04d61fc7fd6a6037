package observe

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Visit collects what is seen of a visit to a route.
type Visit struct {
	w       *Watch
	route   *route
	began   time.Time
	strains []strain // of the hops

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
func (w *Watch) Begin(name string) (*Visit, error) {
	r := w.routes[name]
	if r == nil {
		return nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.realtime = clock.Real()
	if err := w.drain(); err != nil {
		return nil, err
	}
	for _, h := range r.hops {
		w.log.Take(h.place())
	}
	w.log.Forget()
	if _, err := w.lost(); err != nil {
		return nil, err
	}
	v := &Visit{w: w, route: r}
	for _, h := range r.hops {
		v.strains = append(v.strains, strainOf(h))
	}
	v.began = time.Now()
	v.last = v.began
	return v, nil
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
	a.Arrived = func(offset int64) (int64, bool) {
		return v.w.log.Arrived(v.route.client, a.Local, offset)
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
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	lost, err := v.w.lost()
	if err != nil {
		return nil, err
	}
	e := v.evidence()
	e.Lost, e.Others, e.ClockMoved = lost, len(pools[0]), moved
	e.Window = v.last.Sub(v.began).Seconds()
	for i := range e.Hops {
		e.Hops[i].Stopped = stopped[i]
	}
	v.w.log.Forget()
	return e, nil
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

// match looks for each request at each hop. It reports whether nothing is missing. A last call takes
// what there is.
func (v *Visit) match(pools [][]tokens.Seen, last bool) (complete bool, err error) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	if err := v.w.drain(); err != nil {
		return false, err
	}
	complete = true
	for i, h := range v.route.hops {
		if h.sealed {
			complete = v.sealed(i, h) && complete
			continue
		}
		pools[i] = append(pools[i], v.w.log.Take(h.place())...)
		left := v.byMark(i, &pools[i])
		complete = v.byText(i, &pools[i], left, last) && complete
	}
	for _, a := range v.asked {
		if !slices.Contains(a.found, false) {
			_, missed := tokens.Divide(a.chain, &a.Asked)
			complete = complete && missed == 0
		}
	}
	return complete, nil
}

// sealed looks for requests at a hop by the bytes that the client counted.
func (v *Visit) sealed(i int, h hop) (all bool) {
	all = true
	front := v.route.hops[len(v.route.hops)-1].place()
	for _, a := range v.asked {
		if a.found[i] {
			continue
		}
		if s, ok := v.w.log.Sealed(v.route.client, h.place(), front, &a.Asked); ok {
			a.take(i, s, tokens.ByID)
		} else {
			all = false
		}
	}
	return all
}

// byMark looks for requests at a hop. It returns those that it does not find.
func (v *Visit) byMark(hop int, pool *[]tokens.Seen) (left []*asked) {
	for _, a := range v.asked {
		if a.found[hop] {
			continue
		}
		i, how := tokens.Pair(*pool, a.Mark)
		if i < 0 {
			left = append(left, a)
			continue
		}
		a.take(hop, (*pool)[i], how)
		*pool = slices.Delete(*pool, i, i+1)
	}
	return left
}

// byText looks for requests at a hop. It takes them if it finds all of them, or anyway.
func (v *Visit) byText(hop int, pool *[]tokens.Seen, left []*asked, anyway bool) (all bool) {
	var requests []*tokens.Asked
	for _, a := range left {
		requests = append(requests, &a.Asked)
	}
	found := tokens.PairByText(*pool, requests)
	if all = !slices.Contains(found, -1); !all && !anyway {
		return false
	}
	var rest []tokens.Seen
	for i, s := range *pool {
		if k := slices.Index(found, i); k >= 0 {
			left[k].take(hop, s, tokens.ByText)
		} else {
			rest = append(rest, s)
		}
	}
	*pool = rest
	return all
}

func (a *asked) take(hop int, s tokens.Seen, how tokens.How) {
	a.chain[hop], a.found[hop], a.how = s, true, max(a.how, how)
}

func (v *Visit) evidence() *sample.Evidence {
	e := &sample.Evidence{Responses: len(v.asked), Writes: true}
	for _, h := range v.route.hops {
		e.Hops = append(e.Hops, h.about)
	}
	sums := tokens.NewSums(len(v.route.hops) - 1)
	seen := 0.0
	for _, a := range v.asked {
		if slices.Contains(a.found, false) {
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
		rows, missed := tokens.Divide(a.chain, &a.Asked)
		e.Tokens, e.Matched = e.Tokens+len(rows)+missed, e.Matched+len(rows)
		sums.Add(rows)
		sums.AddWaits(&a.chain[0])
		e.Writes = e.Writes && a.chain[0].Wrote != nil
	}
	if e.Matched > 0 {
		sums.Note(e)
	}
	e.End /= max(1, seen)
	return e
}
