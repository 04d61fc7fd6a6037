package observe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
)

// sighting is a packet with a request's mark, one that opens a connection, one with which TLS
// begins, or a datagram.
type sighting struct {
	opens    bool
	hello    tokens.Hello // of TLS; zero: none
	space    int
	out      bool
	src, dst netip.AddrPort
	seq      uint32
	at       int64
	sum      uint64 // of a UDP packet
	protocol string // of a request's packet; "": HTTP/1.1, or unknown
	marks    bool   // it has a request's mark
	seals    bool   // its socket's first one with TLS after a mark came, which leaves
	// by are the sockets of the processes that sent it; nil: unknown.
	by map[uint32]bool
}

// mostSpaces bounds the namespaces in which a request is looked for.
const mostSpaces = 256

// ErrUnseen means that a route's server does not handle the request on this machine.
var ErrUnseen = errors.New("no process of this machine received the request (as root on the " +
	"server's machine, or a pod's node, toll would see it)")

// unseenThereError is ErrUnseen where another machine was searched, too.
type unseenThereError struct{ name string }

func (e *unseenThereError) Error() string {
	return "no process of " + e.name + " received the request on a connection that the client opened"
}

func (e *unseenThereError) Is(err error) bool { return err == ErrUnseen }

var errFull = errors.New("too many packets of others to find the request among them")

// Ask makes a request over a new connection.
type Ask func() (openai.Facts, error)

// Follow finds the hops of a route by a request, which ask makes with a mark from a client in the
// network namespace of process from, 0 for this one. It returns ask's error. unseen is why the
// route cannot be followed. If rings lost packets, it asks once more.
func (w *Watch) Follow(ctx context.Context, name string, from int, ask Ask) (unseen, err error) {
	from = cmp.Or(from, os.Getpid())
	r, unseen, err := retryWithLargerRings(func(busy []int) (*route, []int, error, error) {
		return w.follow(ctx, name, from, busy, ask)
	})
	if unseen == nil && err == nil {
		if unseen = w.settleOn(ctx, name, r); unseen == nil {
			w.routes[name] = r
		}
	}
	return unseen, err
}

// retryWithLargerRings returns what follow does. If rings lost packets, the route may lack hops, and
// the last one found would be called the server: then it calls follow again, for those rings, and
// returns the route with more hops. It is unsure unless the second one lost none.
func retryWithLargerRings(follow func(busy []int) (r *route, full []int, unseen, err error)) (
	r *route, unseen, err error) {
	r, full, unseen, err := follow(nil)
	if len(full) == 0 || err != nil || unseen != nil && !errors.Is(unseen, ErrUnseen) {
		return r, unseen, err
	}
	again, full, unseenAgain, err := follow(full)
	switch {
	case err != nil:
		return nil, nil, err
	case unseen == nil && (unseenAgain != nil || len(again.hops) < len(r.hops)):
		r.unsure = unseenAgain != nil || len(full) > 0
		return r, nil, nil
	case errors.Is(unseenAgain, ErrUnseen) && len(full) > 0:
		unseenAgain = errFull
	case unseenAgain == nil:
		again.unsure = len(full) > 0
	}
	return again, unseenAgain, nil
}

// follow finds the hops of a route as Follow does, with larger rings in the busy namespaces. full
// are those whose ring lost packets.
func (w *Watch) follow(ctx context.Context, name string, from int, busy []int, ask Ask) (r *route,
	full []int, unseen, err error) {
	var (
		facts       openai.Facts
		there       []sighting
		fullThere   bool
		unseenThere error
	)
	w.asking = name
	seen, full, unseen, err := w.look(ctx, busy, w.markedNext(), func() (err error) {
		look := lookOrder{w.base, w.Several}
		there, fullThere, unseenThere, err = w.far.look(ctx, look, func() (err error) {
			facts, err = ask()
			return err
		})
		return err
	})
	w.asking = ""
	if unseen != nil || err != nil {
		return nil, full, unseen, err
	}
	if fullThere {
		full = append(full, farSpace)
	}
	home, err := w.home(from)
	if err != nil {
		return nil, full, err, nil
	}
	local := uint16(0)
	if facts.TLS != "" {
		local = facts.Local.Port()
	}
	if !w.blind {
		there = slices.DeleteFunc(aligned(seen, there), func(s sighting) bool {
			return s.at > facts.First.UnixNano() // such as to a collector of logs
		})
	}
	if r, err = routeOf(there, home, local); err != nil {
		if w.far != nil && errors.Is(err, ErrUnseen) {
			err = cmp.Or(unseenThere, error(&unseenThereError{w.far.name}))
		}
		return nil, full, err, nil
	}
	r.sealed = slices.DeleteFunc(seen, func(s sighting) bool {
		return !s.seals || s.at > facts.First.UnixNano()
	})
	return r, full, nil, nil
}

// settleOn describes the hops of a route, which are all on one machine. Otherwise it returns why they
// cannot be followed.
func (w *Watch) settleOn(ctx context.Context, name string, r *route) error {
	n := 0
	for _, h := range r.hops {
		if h.space >= farSpace {
			n++
		}
	}
	switch n {
	case 0:
		w.describe(r)
		return nil
	case len(r.hops):
		return w.far.take(ctx, name, r)
	}
	return fmt.Errorf("the request passes a process of this machine and one of %s, whose clocks "+
		"differ", w.far.name)
}

func (w *Watch) marked(p *capture.Packet) bool {
	return len(p.Payload) > 0 && tokens.Marked(p.Payload, w.ours)
}

// markedNext returns a function that reports whether a packet has one of the next marks, of which
// it knows 1,000 at least. It skips other packets fast, because a busy namespace has many.
func (w *Watch) markedNext() func(*capture.Packet) bool {
	const last = 1000 // for three digits
	next := uint64(w.base+w.marks.Load()) / last
	a, b := strconv.AppendUint(nil, next, 10), strconv.AppendUint(nil, next+1, 10)
	return func(p *capture.Packet) bool {
		return (bytes.Contains(p.Payload, a) || bytes.Contains(p.Payload, b)) && w.marked(p)
	}
}

// unwatched is the number of the client's namespace in a Watch that captures nothing there.
const unwatched = -2

// home returns the index of the namespace of a process, or -1 if it is not known.
func (w *Watch) home(pid int) (int, error) {
	if w.blind {
		return unwatched, nil
	}
	id, err := netns.ID(pid)
	return slices.IndexFunc(w.spaces, func(f netns.Found) bool { return f.ID == id }), err
}

// describe sets what a route's hops are, and leaves out those that are one with a later one.
func (w *Watch) describe(r *route) {
	for i := range r.hops {
		_ = w.listens(&r.hops[i]) // or its program stays unknown
	}
	for i := len(r.hops) - 1; i >= 0; i-- { // a program may have several addresses
		if slices.ContainsFunc(r.hops[i+1:], func(h hop) bool { return h.place() == r.hops[i].place() }) {
			r.hops = slices.Delete(r.hops, i, i+1)
		}
	}
	for i := range r.hops {
		r.hops[i].about.Asks = r.asks(r.hops[i])
	}
}

// merge adds namespaces to those that are known, whose indexes stay.
func (w *Watch) merge(found []netns.Found) {
	for _, f := range found {
		known := slices.ContainsFunc(w.spaces, func(g netns.Found) bool { return g.ID == f.ID })
		if known || len(w.spaces) == mostSpaces {
			_ = f.Close()
			continue
		}
		w.spaces = append(w.spaces, f)
	}
}

// openAll captures in all namespaces that this process may enter, of which there must be one. Busy
// ones have large rings.
func openAll(spaces []netns.Found, busy []int, usual, large capture.Size) (rings []*ring,
	err error) {
	all := make([]*ring, len(spaces))
	err = atOnce(len(all), func(i int) (err error) {
		size := usual
		if slices.Contains(busy, i) {
			size = large
		}
		all[i], err = larger(size, usual, func(size capture.Size) (*ring, error) {
			return openIn(spaces[i], i, size, 1)
		})
		return err
	})
	rings = slices.DeleteFunc(all, func(r *ring) bool { return r == nil })
	if len(rings) > 0 {
		return rings, nil
	}
	return nil, err
}

// look captures in all namespaces, with larger rings in the busy ones, while ask makes a request or a
// connection. It returns where new connections and marked packets were seen; with a nil marked, the
// connections only. It returns ask's error; unseen is why it could not look. full are the
// namespaces whose ring lost packets.
func (w *Watch) look(ctx context.Context, busy []int, marked func(*capture.Packet) bool,
	ask func() error) (seen []sighting, full []int, unseen, err error) {
	if w.blind {
		return nil, nil, nil, ask()
	}
	const most, budget = 8, 64 // small rings
	spaces, err := w.find()
	if err != nil {
		return nil, nil, err, ask()
	}
	usual, large := capture.Small, capture.Begins
	switch {
	case w.udp:
		usual, large = capture.Opens.UDP(), capture.Heads.UDP()
	case marked == nil:
		usual = capture.Opens
	}
	w.merge(spaces)
	if marked != nil && !w.udp {
		usual = usual.Times(min(most, max(1, budget/max(1, len(w.spaces)))))
	}
	rings, err := openAll(w.spaces, busy, usual, large)
	defer func() { _ = closeAll(rings) }()
	if err != nil {
		return nil, nil, err, ask()
	}
	seen, err = w.during(ctx, rings, marked, ask)
	for _, r := range rings {
		if lost, err := r.Lost(); err != nil || lost > 0 {
			full = append(full, r.space)
		}
	}
	return seen, full, nil, err
}

func sumOf(p *capture.Packet) uint64 {
	if !p.UDP {
		return 0
	}
	return tokens.SumOf(p)
}

func protocolOf(p *capture.Packet) string {
	if p.UDP {
		return ""
	}
	return tokens.ProtocolOf(p.Payload)
}

// during returns what was captured while ask was called, and shortly after.
func (w *Watch) during(ctx context.Context, rings []*ring, marked func(*capture.Packet) bool,
	ask func() error) (seen []sighting, err error) {
	const (
		often   = 10 * time.Millisecond
		quiet   = 3 * capture.Retire
		longest = time.Second
	)
	asked := make(chan error, 1)
	go func() { asked <- ask() }()
	answered, last, found := time.Time{}, time.Now(), marked == nil
	from := w.senders()
	defer func() { from.note(seen) }()
	for {
		before := len(seen)
		for _, r := range rings {
			r.Read(func(p *capture.Packet) {
				opens := p.Flags&(capture.SYN|capture.ACK) == capture.SYN
				marks := marked != nil && marked(p)
				hello, _, greets := tokens.HelloOf(p.Payload)
				seals := from.seals(r.space, p, greets)
				if opens || marks || seals || greets && marked != nil {
					seen = append(seen, sighting{opens, hello, r.space, p.Out, p.Src, p.Dst, p.Seq,
						p.At, sumOf(p), protocolOf(p), marks, seals, nil})
				}
				if marks {
					from.marked[r.space] = true
					last, found = time.Now(), true
				}
			})
		}
		from.look(seen[before:])
		switch {
		case answered.IsZero():
			select {
			case err := <-asked:
				if err != nil {
					return nil, err
				}
				answered, last = time.Now(), time.Now()
			default:
			}
		case time.Since(last) > quiet && found, time.Since(answered) > longest,
			ctx.Err() != nil:
			return seen, nil
		}
		time.Sleep(often)
	}
}

// routeOf finds the hops of a request by where its packets were seen. A packet keeps its sequence
// number when a packet filter changes its addresses; who received it last handles the request. If
// the client's connection is over TLS, from the port sealed, it is followed by how TLS began,
// through relays that copy it, to who ends TLS. A database that a hop tells of the request is not
// on the way.
func routeOf(seen []sighting, client int, sealed uint16) (*route, error) {
	slices.SortStableFunc(seen, func(a, b sighting) int { return int(a.at - b.at) })
	r := &route{client: tokens.Client{Space: client}}
	hello := helloFrom(seen, client, sealed)
	var order []uint32
	packets := map[uint32][]sighting{}
	for _, s := range forward(seen) {
		greets := s.hello != (tokens.Hello{})
		if s.opens || greets && s.hello != hello || s.seals && !greets || tokens.IsStore(s.protocol) {
			continue
		}
		if packets[s.seq] == nil {
			order = append(order, s.seq)
		}
		packets[s.seq] = append(packets[s.seq], s)
	}
	for _, seq := range order {
		var to *sighting
		for i, s := range packets[seq] {
			if !s.out {
				to = &packets[seq][i]
			}
		}
		if to == nil {
			return nil, ErrUnseen // it left this machine
		}
		first := packets[seq][0]
		at := hop{space: to.space, to: to.dst, sealed: to.hello != (tokens.Hello{}),
			protocol: to.protocol}
		for _, s := range packets[seq] { // who forwards it has no socket of it
			if s.by != nil {
				at.by = s.by
			}
		}
		if !r.has(at) {
			r.hops = slices.Insert(r.hops, 0, at)
		}
		if first.space == client && r.hops[len(r.hops)-1].same(at) {
			r.left(packets[seq])
		}
	}
	if len(r.hops) == 0 || len(r.client.Dialled) == 0 && client != unwatched ||
		r.hops[len(r.hops)-1].sealed != (sealed != 0) {
		return nil, ErrUnseen
	}
	return r, nil
}

// forward leaves out packets that go back on a connection: a server may repeat a request's mark, as
// with the header X-Request-Id. seen is in the order of time.
func forward(seen []sighting) (out []sighting) {
	type way struct {
		space    int
		src, dst netip.AddrPort
	}
	went := map[way]bool{}
	for _, s := range seen {
		if !went[way{s.space, s.dst, s.src}] {
			went[way{s.space, s.src, s.dst}] = true
			out = append(out, s)
		}
	}
	return out
}

// helloFrom returns how a client began TLS from a port, or the zero Hello.
func helloFrom(seen []sighting, client int, local uint16) (h tokens.Hello) {
	for _, s := range seen {
		if s.hello != h && s.out && s.space == client && s.src.Port() == local {
			return s.hello
		}
	}
	return h
}

// has reports whether a hop is one of the route's.
func (r *route) has(at hop) bool { return slices.ContainsFunc(r.hops, at.same) }

// enter adds the hop to which a client opened a connection.
func (r *route) enter(seen []sighting, local uint16) (*route, error) {
	i := slices.IndexFunc(seen, func(s sighting) bool {
		return s.opens && s.out && s.space == r.client.Space && s.src.Port() == local
	})
	if i < 0 {
		return nil, ErrUnseen
	}
	var packet []sighting
	last := -1
	for k, s := range seen {
		if s.opens && s.seq == seen[i].seq {
			if packet = append(packet, s); !s.out {
				last = k
			}
		}
	}
	if last < 0 {
		return nil, ErrUnseen
	}
	r.left(packet)
	h := hop{space: seen[last].space, to: seen[last].dst, past: past(seen, seen[i].seq)}
	r.hops = append(r.hops, h.came(seen[last], packet[0]))
	return r, nil
}

// came notes from where a packet came to the hop that left its sender as it was.
func (h hop) came(here, there sighting) hop {
	if here.src == there.src && here.dst == there.dst {
		h.plain = here.src.Addr()
	}
	return h
}

// left notes where a client's packet went as it left its namespace.
func (r *route) left(packet []sighting) {
	for _, s := range packet {
		if s.out && s.space == r.client.Space {
			r.dial(s.dst)
		}
	}
}

// dial adds addresses to which a client's packets go.
func (r *route) dial(to ...netip.AddrPort) {
	for _, a := range to {
		if !slices.Contains(r.client.Dialled, a) {
			r.client.Dialled = append(r.client.Dialled, a)
		}
	}
}
