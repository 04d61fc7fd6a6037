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
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Watch follows requests of this process. Not for concurrent use, except for its marks.
type Watch struct {
	// Several means that the requests ask for several choices, of which the client reads one.
	Several bool

	base   uint32 // the marks are above it
	marks  atomic.Uint32
	spaces []netns.Found // which the routes cross
	routes map[string]*route
	// anyBytes means that connections are followed, whatever their bytes are.
	anyBytes bool
	serving  bool     // only the server is watched
	dialled  []uint16 // by clients of a server that is watched
	udp      bool     // the requests are datagrams
	dials    bool     // how relays dial the hops behind them is watched, too
	copies   int      // of each capture, besides the first: they show what it costs
	asking   string   // the route whose hops are being found
	// find finds the network namespaces in which servers may be.
	find func() ([]netns.Found, error)
	far  *distant // on another machine; nil: none
	// blind means that nothing is captured on this machine.
	blind bool

	mu    sync.Mutex
	log   *tokens.Log
	rings []*ring
	extra []*ring            // copies, whose packets are dropped
	spare []*writes.Recorder // the same of writes
	// writes records the writes of servers; nil: this kernel or process cannot.
	writes   *writes.Recorder
	writesOf writes.Of          // what it records
	idle     []*writes.Recorder // of the same, detached
	unread   int                // events that it lost before the visit
	// grown is by how much the next ring of a namespace will be larger than usual, and grownWrites
	// that of the writes, a power of two: those that lost something are.
	grown       map[int]int
	ties        map[int]map[int]link.Tie // of devices, by namespace and index
	ported      ported
	grownWrites int
	// holes means that packets or writes were lost since the log was made.
	holes    bool
	stale    bool  // the captures are to be opened anew
	recorded int   // packets and writes so far
	realtime int64 // from CLOCK_MONOTONIC to CLOCK_REALTIME, ns
	stop     chan struct{}
	over     sync.WaitGroup
}

// route has the hops from a server to a client. Namespaces are indexes into Watch.spaces.
type route struct {
	hops   []hop // from the server on
	client tokens.Client
	server Server // if it is on another machine
	unsure bool   // it may lack hops, because captures lost packets
	// sealed are where sockets sent TLS while a request waited for its first token.
	sealed []sighting
}

type hop struct {
	space int
	to    netip.AddrPort // where a connection or a datagram came
	from  []tokens.Place // from where it was dialled, by the ports that were dialled
	// past has the namespaces through which packets come to it, each with the ports to which they go.
	past []tokens.Place
	// sealed means that the connection to it is over TLS.
	sealed   bool
	protocol string // by which it is asked; "": HTTP/1.1, or unknown
	// aside means that no tokens come from it though it gets requests, as a gateway's authorization.
	aside bool
	about sample.EvidenceHop
	// plain is from where a connection came to it without NAT; zero: it was dialled at another address,
	// or that is unknown.
	plain netip.Addr
	// addr is one of the addresses at which its program listens, if other programs have the port at
	// other addresses. takes reports whether what comes to an address comes to it; nil: all does.
	addr  netip.Addr
	takes tokens.Takes
	// inodes are those of the sockets that receive what comes to it, and by those of the processes
	// that asked it; nil: unknown.
	inodes, by map[uint32]bool
}

// place returns where the log finds the hop, once it is described.
func (h hop) place() tokens.Place {
	return tokens.Place{Space: h.space, Port: h.to.Port(), Addr: h.addr}
}

// distant reports whether the hops are on another machine.
func (r *route) distant() bool { return len(r.hops) > 0 && r.hops[0].space >= farSpace }

// passed returns the indexes of the hops that tokens pass.
func (r *route) passed() (out []int) {
	for i, h := range r.hops {
		if !h.aside {
			out = append(out, i)
		}
	}
	return out
}

// near returns the hops on this machine.
func (r *route) near() []hop {
	if r.distant() {
		return nil
	}
	return r.hops
}

// same reports whether another hop is where this one is.
func (h hop) same(o hop) bool { return h.space == o.space && h.to == o.to }

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
	return newWatch(), nil
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

// NewBlind returns a Watch for a process that may not capture packets: it follows routes to servers
// on another machine (Beyond), over HTTP. What the client's machine adds is then in the wire's part.
func NewBlind() *Watch {
	w := newWatch()
	w.blind = true
	return w
}

func newWatch() *Watch {
	return &Watch{base: markBase + rand.Uint32N(markBase), routes: map[string]*route{},
		find: netns.Find, grown: map[int]int{}}
}

func (w *Watch) ours(mark uint32) bool { return mark > w.base && mark <= w.base+mostMarks }

// Close ends the captures, also on another machine, and forgets the routes.
func (w *Watch) Close() error {
	w.far.close()
	w.far = nil
	errs := []error{w.halt(), w.closeIdle()}
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
		switch {
		case r == nil:
		case w.dials: // there are many visits
			errs = append(errs, r.Pause(), r.Read(func(*writes.Event) {}))
			w.idle = append(w.idle, r)
		default:
			errs = append(errs, r.Close())
		}
	}
	w.rings, w.extra, w.writes, w.spare = nil, nil, nil, nil
	return errors.Join(errs...)
}

// closeIdle closes the recorders that are detached.
func (w *Watch) closeIdle() (err error) {
	for _, r := range w.idle {
		err = errors.Join(err, r.Close())
	}
	w.idle = nil
	return err
}

// Start opens the captures of all routes' ports. If it fails, the Watch follows nothing.
func (w *Watch) Start() error {
	err := w.start()
	if err == nil && slices.ContainsFunc(slices.Collect(maps.Values(w.routes)), (*route).distant) {
		_, err = w.far.do(context.Background(), order{Start: true})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("watch tokens: %w", err), w.Close())
	}
	return nil
}

func (w *Watch) start() error {
	size := capture.Large
	switch {
	case w.udp:
		size = capture.Heads.UDP()
	case w.serving:
		size = capture.Begins
	case w.anyBytes:
		size = capture.Heads
	}
	if w.dials {
		size = size.Bridged()
	}
	w.openWrites() // before the captures, so that each captured reply has its write
	if err := w.open(size, w.newLog()); err != nil {
		return err
	}
	w.stop = make(chan struct{})
	w.over.Go(w.read)
	return nil
}

// newLog makes the log anew. It returns the ports that it follows, by namespace.
func (w *Watch) newLog() map[int][]uint16 {
	switch {
	case w.serving:
		w.log = tokens.NewServer()
	case w.anyBytes:
		w.log = tokens.NewLog(nil)
	default:
		w.log = tokens.NewLog(w.ours)
	}
	w.log.Several, w.holes = w.Several, false
	if w.dials {
		w.ties, w.log.Between = map[int]map[int]link.Tie{}, w.between
	}
	ports := map[int][]uint16{}
	for _, r := range w.routes {
		for _, h := range r.near() {
			w.log.Serve(h.place(), h.takes)
			ports[h.space] = append(ports[h.space], h.to.Port())
			for _, p := range h.from {
				if w.dials {
					w.log.Dial(p.Space, p.Port)
					ports[p.Space] = append(ports[p.Space], p.Port)
				}
			}
			for _, p := range h.past {
				if w.dials {
					ports[p.Space] = append(ports[p.Space], p.Port)
				}
			}
		}
		for _, a := range r.client.Dialled {
			w.log.Dial(r.client.Space, a.Port())
			ports[r.client.Space] = append(ports[r.client.Space], a.Port())
		}
	}
	w.log.Dialled(w.dialled...)
	return ports
}

// openWrites begins to record the servers' writes. Without them, what they would tell is in the
// server's part. Of routes that may yet lose hops, any hop may be the server.
func (w *Watch) openWrites() {
	of := writes.Of{UDP: w.udp, Runs: w.serving || w.dials && !w.udp} // how processes spent their time
	for _, r := range w.routes {
		for i, h := range r.near() {
			if i == r.passed()[0] || w.anyBytes {
				of.Local = append(of.Local, h.to.Port())
			}
			for _, p := range h.from {
				of.Dialled = append(of.Dialled, p.Port)
			}
		}
	}
	if len(of.Local) == 0 {
		return
	}
	switch {
	case w.serving:
		of.Dialled, of.Reads = w.dialled, true // the clients' sockets
	case !of.Runs:
		of.Dialled = nil
	}
	of.Times = max(1, w.grownWrites)
	if !reflect.DeepEqual(of, w.writesOf) {
		_ = w.closeIdle()
	}
	w.writesOf, w.unread = of, 0
	if w.writes, _ = larger(of.Times, 1, w.record); w.writes != nil {
		w.unread, _ = w.writes.Lost() // before
	}
	for range w.copies {
		if r, err := w.record(w.writesOf.Times); err == nil {
			w.spare = append(w.spare, r)
		}
	}
}

// record attaches a detached recorder, because making one takes a tenth of a second. If there is
// none, it opens one of what writesOf says, larger than usual by times, which it notes there.
func (w *Watch) record(times int) (*writes.Recorder, error) {
	if n := len(w.idle) - 1; n >= 0 {
		r := w.idle[n]
		w.idle = w.idle[:n]
		if err := r.Resume(); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		return r, nil
	}
	of := w.writesOf
	of.Times = times
	r, err := writes.Open(of)
	if err == nil {
		w.writesOf = of
	}
	return r, err
}
