// Package observe captures the packets of streamed responses between a server of this machine, the
// relays in front of it and the client, in whichever network namespaces they are.
//
// It finds the hops of each route by one request, whose mark it looks for in all namespaces, and
// then captures only packets of the hops' ports. Packets are read in blocks, so that no reader is
// woken up while one is delivered. The captures end with the process.
package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Watch follows requests of this process. Not for concurrent use, except for its marks.
type Watch struct {
	base   uint32 // the marks are above it
	marks  atomic.Uint32
	spaces []netns.Found // which the routes cross
	routes map[string]*route
	// anyBytes means that connections are followed, whatever their bytes are.
	anyBytes bool
	serving  bool   // only the server is watched
	dials    bool   // how relays dial the hops behind them is watched, too
	copies   int    // of each capture, besides the first: they show what it costs
	asking   string // the route whose hops are being found

	mu    sync.Mutex
	log   *tokens.Log
	rings []*ring
	extra []*ring            // copies, whose packets are dropped
	spare []*writes.Recorder // the same of writes
	// writes records the writes of servers; nil: this kernel or process cannot.
	writes   *writes.Recorder
	unread   int   // events that it lost before the visit
	recorded int   // packets and writes so far
	realtime int64 // from CLOCK_MONOTONIC to CLOCK_REALTIME, ns
	stop     chan struct{}
	over     sync.WaitGroup
}

type ring struct {
	*capture.Ring
	space int
}

// route has the hops from a server to a client. Namespaces are indexes into Watch.spaces.
type route struct {
	hops   []hop // from the server on
	client int
	dialed []uint16 // ports from which packets come to the client
}

type hop struct {
	space int
	port  uint16
	from  []tokens.Place // from where it was dialled, by the ports that were dialled
	// sealed means that the connection to it is over TLS.
	sealed bool
	about  sample.EvidenceHop
}

func (h hop) place() tokens.Place { return tokens.Place{Space: h.space, Port: h.port} }

const (
	markBase  = 1_000_000_000 // the least number with as many digits as marks have
	mostMarks = 1_000_000
)

// New returns a Watch that follows nothing yet, or an error if this process may not capture
// packets. The caller closes it.
func New() (*Watch, error) {
	r, err := capture.Open(capture.Small, 1)
	if err != nil {
		return nil, err
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	return &Watch{base: markBase + rand.Uint32N(markBase), routes: map[string]*route{}}, nil
}

// Marker returns a function that returns the mark of a route's next request, or 0 if the route is
// not followed.
func (w *Watch) Marker(route string) func() uint32 {
	return func() uint32 {
		if w.routes[route] == nil && w.asking != route {
			return 0
		}
		return w.base + w.marks.Add(1)
	}
}

func (w *Watch) ours(mark uint32) bool { return mark > w.base && mark <= w.base+mostMarks }

// Close ends the captures and forgets the routes.
func (w *Watch) Close() error {
	errs := []error{w.halt()}
	for _, s := range w.spaces {
		errs = append(errs, s.Close())
	}
	w.spaces = nil
	clear(w.routes)
	return errors.Join(errs...)
}

// halt ends the captures. Start may open them again.
func (w *Watch) halt() error {
	var errs []error
	if w.stop != nil {
		close(w.stop)
		w.over.Wait()
		w.stop = nil
	}
	errs = append(errs, closeAll(append(w.rings, w.extra...)))
	for _, r := range append(w.spare, w.writes) {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	w.rings, w.extra, w.writes, w.spare, w.unread = nil, nil, nil, nil, 0
	return errors.Join(errs...)
}

// Start opens the captures of all routes' ports. If it fails, the Watch follows nothing.
func (w *Watch) Start() error {
	if err := w.start(); err != nil {
		return errors.Join(fmt.Errorf("watch tokens: %w", err), w.Close())
	}
	return nil
}

func (w *Watch) start() error {
	size := capture.Large
	switch w.log = tokens.NewLog(w.ours); {
	case w.serving:
		w.log, size = tokens.NewServer(), capture.Heads
	case w.anyBytes:
		w.log, size = tokens.NewLog(nil), capture.Heads
	}
	w.openWrites() // before the captures, so that each captured reply has its write
	ports := map[int][]uint16{}
	for _, r := range w.routes {
		for _, h := range r.hops {
			w.log.Serve(h.space, h.port)
			ports[h.space] = append(ports[h.space], h.port)
			for _, p := range h.from {
				if w.dials {
					w.log.Dial(p.Space, p.Port)
					ports[p.Space] = append(ports[p.Space], p.Port)
				}
			}
		}
		for _, p := range r.dialed {
			w.log.Dial(r.client, p)
			ports[r.client] = append(ports[r.client], p)
		}
	}
	if err := w.open(size, ports); err != nil {
		return err
	}
	w.stop = make(chan struct{})
	w.over.Go(w.read)
	return nil
}

// openWrites begins to record the servers' writes. Without them, what they would tell is in the
// server's part.
func (w *Watch) openWrites() {
	var servers []uint16
	for _, r := range w.routes {
		if len(r.hops) > 0 {
			servers = append(servers, r.hops[0].port)
		}
	}
	if len(servers) == 0 {
		return
	}
	w.writes, _ = writes.Open(servers...)
	for range w.copies {
		if r, err := writes.Open(servers...); err == nil {
			w.spare = append(w.spare, r)
		}
	}
}

// open opens the captures of ports in namespaces, and their copies.
func (w *Watch) open(size capture.Size, ports map[int][]uint16) error {
	spaces := slices.Sorted(maps.Keys(ports))
	rings := make([]*ring, len(spaces)*(1+w.copies))
	err := atOnce(len(rings), func(i int) (err error) {
		space := spaces[i%len(spaces)]
		all := slices.Sorted(slices.Values(ports[space]))
		rings[i], err = openIn(w.spaces[space], space, size, slices.Compact(all)...)
		return err
	})
	for i, r := range rings {
		switch {
		case r == nil:
		case i < len(spaces):
			w.rings = append(w.rings, r)
		default:
			w.extra = append(w.extra, r)
		}
	}
	return err
}

// openIn opens a capture in a namespace.
func openIn(in netns.Found, space int, size capture.Size, ports ...uint16) (r *ring, err error) {
	err = in.Visit(func() error {
		opened, err := capture.Open(size, ports...)
		if err == nil {
			r = &ring{opened, space}
		}
		return err
	})
	return r, err
}

// atOnce calls f for 0 to n-1 concurrently. The kernel waits for a while whenever a capture begins or
// ends: captures that do so at the same time wait together.
func atOnce(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func closeAll(rings []*ring) error {
	return atOnce(len(rings), func(i int) error { return rings[i].Close() })
}

// read empties the rings until stop is closed.
func (w *Watch) read() {
	t := time.NewTicker(capture.Retire)
	defer t.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-t.C:
			w.mu.Lock()
			err := w.drain()
			w.mu.Unlock()
			if err != nil { // the visit's end reports it
				return
			}
		}
	}
}

func (w *Watch) drain() error {
	for _, r := range w.rings {
		r.Read(func(p *capture.Packet) {
			w.recorded++
			w.log.Add(r.space, p)
		})
	}
	for _, r := range w.extra {
		r.Read(func(*capture.Packet) {})
	}
	for _, r := range w.spare {
		if err := r.Read(func(*writes.Event) {}); err != nil {
			return err
		}
	}
	if w.writes == nil {
		return nil
	}
	// They come after the packets, so that those of each packet are there.
	return w.writes.Read(func(e *writes.Event) {
		w.recorded++
		id := fmt.Sprintf("net:[%d]", e.NetNS)
		space := slices.IndexFunc(w.spaces, func(f netns.Found) bool { return f.ID == id })
		if space < 0 {
			return
		}
		e.At += w.realtime
		w.log.AddWrite(space, *e)
	})
}

// lost returns the number of packets and writes that were lost since its last call.
func (w *Watch) lost() (sum int, err error) {
	if w.writes != nil {
		n, err := w.writes.Lost()
		if err != nil {
			return 0, err
		}
		sum, w.unread = n-w.unread, n
	}
	for _, r := range w.rings {
		n, err := r.Lost()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

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
		w.log.Take(h.space, h.port)
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
	a := &asked{chain: make([]tokens.Seen, n), found: make([]bool, n),
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
	moved := clockMoved(v.began)
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

// clockMoved returns by how much CLOCK_REALTIME was set since a time, in s.
func clockMoved(since time.Time) float64 {
	now := time.Now()
	moved := time.Duration(now.UnixNano()-since.UnixNano()) - now.Sub(since)
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
		pools[i] = append(pools[i], v.w.log.Take(h.space, h.port)...)
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
	dialed := v.route.hops[len(v.route.hops)-1]
	for _, a := range v.asked {
		if a.found[i] {
			continue
		}
		if s, ok := v.w.log.Sealed(h.place(), dialed.place(), &a.Asked); ok {
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
	for _, a := range v.asked {
		if slices.Contains(a.found, false) {
			e.Tokens += len(a.Read)
			continue
		}
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
	return e
}
