package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/machine/gpu"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
)

// Arg is the argument that makes toll the observer of a toll on another machine (see Serve).
const Arg = "__observe"

// Serve observes this machine for a toll on another one, which calls Watch.Beyond: it reads orders
// from in and writes what it saw to out until the input ends. Of requests that are not that toll's it
// tells the number.
func Serve(in io.Reader, out io.Writer) error {
	o := &observer{open: New}
	return o.run(in, out)
}

func (o *observer) run(in io.Reader, out io.Writer) error {
	err := o.serve(in, out)
	o.server.stop(nil, nil)
	for _, m := range o.meters {
		m.Close()
	}
	if o.w != nil {
		err = errors.Join(err, o.w.Close())
	}
	return err
}

type observer struct {
	open  func() (*Watch, error)
	w     *Watch        // nil: not yet open
	busy  []int         // namespaces whose rings lost packets
	asked chan struct{} // closed when the request that is looked for was made
	found chan looked   // nil: nothing is looked for
	visit *Visit
	left  []farSeen // for which the last answer had no room

	servers map[string]*server // by route
	server  *server            // of the present visit; nil: there is none
	meters  map[int]*gpu.Meter
}

// looked is the result of Watch.look.
type looked struct {
	seen        []sighting
	full        []int
	unseen, err error
}

func (o *observer) serve(in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	orders := make(chan order)
	go func() {
		defer close(orders)
		defer cancel() // the present order ends with the input
		for dec := json.NewDecoder(in); ; {
			var x order
			if dec.Decode(&x) != nil {
				return
			}
			select {
			case orders <- x:
			case <-ctx.Done():
				return
			}
		}
	}()
	enc := json.NewEncoder(out)
	for x := range orders {
		n, err := o.obey(ctx, x)
		if err != nil {
			n.Error = err.Error()
			n.Denied = errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
		}
		if err := enc.Encode(n); err != nil {
			return err
		}
	}
	if o.found != nil { // its captures are still open
		<-o.found
	}
	return nil
}

func (o *observer) obey(ctx context.Context, x order) (n news, err error) {
	if o.w == nil {
		if o.w, err = o.open(); err != nil {
			return n, err
		}
		o.servers, o.meters = map[string]*server{}, map[int]*gpu.Meter{}
	}
	if err := x.check(len(o.w.spaces)); err != nil {
		return n, err
	}
	switch {
	case x.Look != nil && o.found == nil:
		o.look(ctx, x.Look)
		return n, nil
	case x.Found && o.found != nil:
		return o.sights()
	case x.Take != nil:
		return o.take(ctx, x.Take)
	case x.Start:
		return n, o.w.Start()
	case x.Begin != "":
		return n, o.begin(ctx, x.Begin)
	case x.End != nil && o.visit != nil:
		return o.end(ctx, *x.End)
	case x.Bytes != nil && o.visit != nil:
		return o.bytes(x.Bytes)
	case x.Spans != nil && o.server != nil:
		n.GPU = o.server.stop(spansOf(x.Spans.Whole), spansOf(x.Spans.Slow))
		return n, nil
	case x.More:
		return o.some(n), nil
	}
	return n, errors.New("unknown order")
}

// look begins to look for marked requests, and returns once the captures are open.
func (o *observer) look(ctx context.Context, x *lookOrder) {
	o.w.base, o.w.Several = x.Base, x.Several
	open := make(chan struct{})
	o.asked, o.found = make(chan struct{}), make(chan looked, 1)
	go func() {
		var l looked
		l.seen, l.full, l.unseen, l.err = o.w.look(ctx, o.busy, o.w.marked, func() error {
			close(open)
			select {
			case <-o.asked:
			case <-ctx.Done():
			}
			return nil
		})
		o.found <- l
	}()
	<-open
}

// sights ends looking.
func (o *observer) sights() (n news, err error) {
	close(o.asked)
	l := <-o.found
	o.found, o.busy, n.Full = nil, l.full, len(l.full) > 0
	for _, s := range l.seen {
		if s.opens {
			continue
		}
		if len(n.Sights) == mostSights {
			return news{}, errFull
		}
		n.Sights = append(n.Sights, sight{Hello: s.hello, Space: s.space, Out: s.out, Src: s.src,
			Dst: s.dst, Seq: s.seq, At: s.at, Protocol: s.protocol})
	}
	return n, errors.Join(l.unseen, l.err)
}

// take makes the hops a route, and describes them.
func (o *observer) take(ctx context.Context, x *takeOrder) (n news, err error) {
	r := &route{}
	for _, h := range x.Hops {
		r.hops = append(r.hops, hop{space: h.Space, to: h.To, sealed: h.Sealed,
			protocol: h.Protocol})
	}
	o.w.describe(r)
	for _, h := range r.hops {
		n.Hops = append(n.Hops, farHop{h.space, h.to, h.sealed, h.protocol, h.about})
	}
	o.w.routes[x.Route] = r
	s := o.w.serverOf(ctx, r, o.meters)
	o.servers[x.Route], n.Server = s, Server{Process: s.read != nil, GPU: s.gpu != nil}
	return n, nil
}

func (o *observer) begin(ctx context.Context, route string) (err error) {
	o.server.stop(nil, nil)
	if o.visit, err = o.w.Begin(ctx, route); err != nil {
		return err
	}
	if o.visit == nil {
		return fmt.Errorf("no route is called %q", route)
	}
	o.server = o.servers[route]
	o.server.begin()
	return nil
}

// end waits for what the captures still hold, for a second at most.
func (o *observer) end(ctx context.Context, x endOrder) (n news, err error) {
	v := o.visit
	n.Moved, n.Counts = clockMoved(v.w.realtime), o.server.counts()
	for _, s := range v.strains {
		n.Stopped = append(n.Stopped, s.stopped())
	}
	texts := map[uint64]bool{}
	for _, t := range x.Texts {
		texts[t.Hash] = true
	}
	o.left = nil
	const longest = time.Second
	for until := time.Now().Add(longest); ; {
		time.Sleep(capture.Retire)
		missing, err := o.collect(&n, x, texts)
		if err != nil {
			return n, err
		}
		if missing <= 0 || ctx.Err() != nil || time.Now().After(until) {
			break
		}
	}
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	n.Lost, err = v.w.lost(v.route.crosses)
	return o.some(n), err
}

// collect keeps what the hops saw of our requests, and counts the others at the server. It returns how
// many requests are missing.
func (o *observer) collect(n *news, x endOrder, texts map[uint64]bool) (missing int, err error) {
	w := o.visit.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.drain(); err != nil {
		return 0, err
	}
	for i, h := range o.visit.route.hops {
		if h.sealed {
			continue // Bytes takes it
		}
		missing += int(x.To - x.From)
		for _, s := range w.log.Take(h.place()) {
			ours := s.Mark > x.From && s.Mark <= x.To
			if k := len(s.Events); s.Mark == 0 && k > 0 {
				ours = texts[s.Events[k-1].Hash]
			}
			switch {
			case ours:
				o.left = append(o.left, farSeen{i, s})
			case i == 0:
				n.Others++
			}
		}
	}
	return missing - len(o.left), nil
}

// bytes looks for a request over TLS.
func (o *observer) bytes(x *bytesOrder) (n news, err error) {
	v := o.visit
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	if err := v.w.drain(); err != nil {
		return n, err
	}
	front := v.route.hops[len(v.route.hops)-1].place()
	a := &tokens.Asked{Mark: x.Mark, Asked: x.Asked, Ends: x.Ends, Texts: x.Texts}
	for i, h := range v.route.hops {
		if !h.sealed {
			continue
		}
		if s, ok := v.w.log.SealedFrom(x.Base, h.place(), front, a); ok {
			n.Seen = append(n.Seen, farSeen{i, s})
		}
	}
	return n, nil
}

// some adds as many requests to an answer as fit into it. A response that alone does not fit is left
// out, so its tokens are missing.
func (o *observer) some(n news) news {
	events := 0
	for len(o.left) > 0 {
		k := len(o.left[0].Events)
		if events > 0 && events+k > mostEvents {
			n.More = true
			return n
		}
		if events += k; k <= mostEvents {
			n.Seen = append(n.Seen, o.left[0])
		}
		o.left = o.left[1:]
	}
	return n
}
