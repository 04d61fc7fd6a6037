package dial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/conntrack"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// watcher records packets in all namespaces, and the rules that they match.
type watcher struct {
	net      *Net
	spaces   []traced
	captures []*capture // the Net's spaces come first
	where    map[*netns.NS]int
	lost     bool // some packets were not captured
	known    map[group]replica.Lost
	err      error // of ruleOf
}

type traced struct {
	tracer *nft.Tracer // nil: no nf_tables
	events []nft.Event
	legacy bool // there are iptables-legacy tables, whose rules are not traced
	// placed has the rules of the chains that were asked for, by table and chain.
	placed map[[2]string]map[uint64]nft.Placed
	// translated has the connections that NAT rewrites, by the client and the dialled address; nil:
	// not read since the last calls.
	translated map[[2]netip.AddrPort]conntrack.Translation
}

// found has what was seen of an attempt's packets. If a relay made a further connection, these are
// the packets of the last connection.
type found struct {
	*attempt
	client         int            // index in captures
	from, to       netip.AddrPort // addresses as the client sees them
	out, back      []sighting
	errors         []sighting
	before, behind []sighting // in connections before the last one
	unsent         error      // why the kernel refused the last connection at once; nil: it did not
	events         []event
	earlier        []event // of connections before the last one
}

type event struct {
	nft.Event
	space int
	reply bool
}

const (
	explained = 256 // most attempts that are explained at once

	// Each attempt has a new port, because connection tracking remembers used ones.
	firstPort = 33000
	lastPort  = 60000
	portStep  = 3 // leaves two alternatives if a port is in use
)

// Explain makes each call once. It returns the outcome, the steps of the first packet and of the
// answer and, if there was no answer, where and why packets were lost. The Net must not be used
// concurrently.
func (n *Net) Explain(ctx context.Context, calls []Call) ([]replica.Answer, error) {
	return n.explain(ctx, calls, nil)
}

// ExplainExchange is like Explain for the calls of Exchange.
func (n *Net) ExplainExchange(ctx context.Context, calls []Call, ports []uint16) (
	[]replica.Answer, error) {
	return n.explain(ctx, calls, ports)
}

func (n *Net) explain(ctx context.Context, calls []Call, ports []uint16) (out []replica.Answer,
	err error) {
	if err := n.prepare(calls); err != nil {
		return nil, err
	}
	if n.stamping == 0 {
		if n.stamping, err = startStamping(); err != nil {
			return nil, fmt.Errorf("note when packets arrive: %w", err)
		}
	}
	w, err := n.watch(calls)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	attempts := make([]*attempt, len(calls))
	for i, c := range calls {
		attempts[i] = &attempt{Call: c}
		if ports != nil {
			attempts[i].port, attempts[i].long = ports[i], true
		}
	}
	for len(attempts) > 0 {
		part := distinguishable(attempts)
		attempts = attempts[len(part):]
		all, err := w.observeAll(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, f := range all {
			lost, err := w.explain(ctx, f)
			if err != nil {
				return nil, err
			}
			redirected, err := w.redirected(ctx, f, lost)
			if err != nil {
				return nil, err
			}
			out = append(out, replica.Answer{Outcomes: []replica.Outcome{f.attempt.out},
				Steps: append(f.steps(), redirected...), Lost: lost})
		}
	}
	return out, errors.Join(w.err, w.forward(ctx, calls, out))
}

// distinguishable returns as many of the first attempts as may be observed at once: packets are
// assigned to attempts by their client's port.
func distinguishable(all []*attempt) []*attempt {
	used := map[uint16]bool{}
	for i, a := range all {
		if i == explained || used[a.port] {
			return all[:i]
		}
		used[a.port] = a.port != 0
	}
	return all
}

// observeAll makes all attempts. If packets were missed, it tries again with fewer at once.
func (w *watcher) observeAll(ctx context.Context, attempts []*attempt) ([]found, error) {
	all, err := w.observe(ctx, attempts, wait)
	if err != nil || !w.lost || len(attempts) == 1 {
		return all, err
	}
	all = nil
	for part := range slices.Chunk(attempts, (len(attempts)+3)/4) {
		some, err := w.observeAll(ctx, part)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (n *Net) watch(calls []Call) (*watcher, error) {
	w := &watcher{net: n, where: map[*netns.NS]int{}, known: map[group]replica.Lost{},
		spaces: make([]traced, len(n.spaces))}
	from := slices.Clone(n.spaces)
	for i, ns := range from {
		w.where[ns] = i
	}
	for _, c := range calls {
		if _, ok := w.where[c.From]; !ok {
			w.where[c.From] = len(from)
			from = append(from, c.From)
		}
	}
	w.captures = make([]*capture, len(from))
	err := each(from, func(i int, ns *netns.NS) (err error) {
		space := -1
		if i < len(n.spaces) {
			space = i
			if err := w.spaces[i].open(ns); err != nil {
				return err
			}
		}
		w.captures[i], err = newCapture(ns, i, space)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// each calls f for all elements concurrently: each change of rules takes long, because the kernel
// waits for its readers.
func each[T any](all []T, f func(int, T) error) error {
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, x := range all {
		running.Go(func() { errs[i] = f(i, x) })
	}
	running.Wait()
	return errors.Join(errs...)
}

func (t *traced) open(ns *netns.NS) error {
	err := ns.Do(func() error {
		rules, err := xtables.Rules()
		if t.legacy = len(rules) > 0; err != nil {
			return err
		}
		if generation, err := nft.Generation(); err != nil || generation == 0 {
			return err
		}
		t.tracer, err = nft.NewTracer()
		return err
	})
	if nft.Unsupported(err) {
		return nil
	}
	return err
}

// ruleOf returns the rule of an event in its chain. After an error, which is in w.err, it returns a
// zero one.
func (w *watcher) ruleOf(e event) nft.Placed {
	t, at := &w.spaces[e.space], [2]string{e.Table, e.Chain}
	if _, known := t.placed[at]; !known {
		var all map[uint64]nft.Placed
		err := w.net.spaces[e.space].Do(func() (err error) {
			all, err = nft.Placements(e.Table, e.Chain)
			return err
		})
		if w.err = errors.Join(w.err, err); t.placed == nil {
			t.placed = map[[2]string]map[uint64]nft.Placed{}
		}
		t.placed[at] = all
	}
	return t.placed[at][e.Handle]
}

func (w *watcher) close() error {
	return errors.Join(
		each(w.captures, func(_ int, c *capture) error {
			if c != nil {
				c.close()
			}
			return nil
		}),
		each(w.spaces, func(_ int, t traced) error {
			if t.tracer == nil {
				return nil
			}
			return t.tracer.Close()
		}))
}

// read records what was seen since the last call.
func (w *watcher) read() error {
	for _, c := range w.captures {
		lost, err := c.read()
		if err != nil {
			return err
		}
		w.lost = w.lost || lost > 0
	}
	for i := range w.spaces {
		t := &w.spaces[i]
		if t.tracer == nil {
			continue
		}
		events, err := t.tracer.Read()
		t.events = append(t.events, events...)
		if err != nil && !errors.Is(err, nft.ErrLost) {
			return err
		}
		w.lost = w.lost || err != nil
	}
	return nil
}

func (w *watcher) forget() {
	w.lost = false
	for _, c := range w.captures {
		c.seen = nil
	}
	for i := range w.spaces {
		w.spaces[i].events, w.spaces[i].translated = nil, nil
	}
}

// observe makes new attempts like those given, and returns what was seen of each.
func (w *watcher) observe(ctx context.Context, like []*attempt, wait time.Duration) (
	[]found, error) {
	if err := w.read(); err != nil { // discard the rest of earlier calls
		return nil, err
	}
	w.forget()
	attempts := make([]*attempt, len(like))
	for i, a := range like {
		attempts[i] = &attempt{Call: a.Call, port: a.port, long: a.long}
		if a.long {
			continue
		}
		n := w.net
		if n.port += portStep; n.port > lastPort {
			n.port = firstPort
		}
		attempts[i].port = uint16(n.port)
	}
	w.net.server.record(true)
	err := w.net.attempt(ctx, attempts, manner{
		most: len(attempts), together: 1, wait: wait, look: w.read, dropped: w.dropped})
	legs := w.net.server.record(false)
	if err != nil {
		return nil, err
	}
	seen := map[id][]sighting{}
	for _, c := range w.captures {
		for _, s := range c.seen {
			seen[s.id] = append(seen[s.id], s)
		}
	}
	for _, s := range seen {
		slices.SortStableFunc(s, func(a, b sighting) int { return cmp.Compare(a.at, b.at) })
	}
	out := make([]found, len(attempts))
	for i, a := range attempts {
		out[i] = w.find(a, seen, legs)
	}
	return out, nil
}

// dropped reports whether a rule has dropped a packet of the attempt, or the answer to it. Rules
// that change the client's address mostly keep its port, which no other attempt has.
func (w *watcher) dropped(a *attempt) bool {
	return slices.ContainsFunc(w.spaces, func(t traced) bool {
		return slices.ContainsFunc(t.events, func(e nft.Event) bool {
			return e.Verdict == "drop" && (e.Src.Port() == a.from.Port() || e.Dst.Port() == a.from.Port())
		})
	})
}

func (w *watcher) find(a *attempt, seen map[id][]sighting, legs []leg) found {
	f := found{attempt: a, client: w.where[a.From], from: a.from, to: plain(a.To)}
	f.add(seen[w.first(f)])
	for range mostRelays {
		i := slices.IndexFunc(legs, func(l leg) bool {
			relay := w.net.server.sockets[l.relay]
			return relay.Proto == a.Proto && slices.ContainsFunc(f.out, func(s sighting) bool {
				return s.space == relay.Space && s.src == l.client
			})
		})
		if i < 0 {
			break
		}
		leg := legs[i]
		relay := w.net.server.sockets[leg.relay]
		next := found{attempt: a, client: relay.Space, from: leg.from, to: plain(relay.Relay)}
		legs = slices.Delete(slices.Clone(legs), i, i+1)
		if a.Proto == "udp" { // the relay forwards the request
			f.client, f.from, f.to = next.client, next.from, next.to
			continue
		}
		next.earlier = append(f.earlier, w.matched(f)...)
		next.before = append(f.before, f.out...)
		next.behind = append(slices.Clone(f.back), f.behind...)
		if next.unsent = leg.err; next.unsent == nil {
			next.add(seen[w.first(next)])
		}
		f = next
	}
	f.events = w.matched(f)
	return f
}

// first returns the ID of a connection. It finds the connection by the client's port or, if rules
// changed that, by connection tracking or the destination.
func (w *watcher) first(f found) (first id) {
	if f.Proto == "udp" {
		return id{unix.IPPROTO_UDP, f.token}
	}
	for _, s := range w.captures[f.client].seen {
		switch {
		case s.proto != unix.IPPROTO_TCP || !s.out || s.reply:
		case s.src.Port() == f.from.Port():
			return s.id
		case s.dst == f.to && !explains(s.src.Port()):
			first = s.id
		}
	}
	if t, ok := w.translated(f.client, f.from, f.to); ok {
		for _, s := range w.captures[f.client].seen {
			if s.proto == unix.IPPROTO_TCP && s.out && s.src == t.As && s.dst == t.Now {
				return s.id
			}
		}
	}
	return first
}

// explains reports whether the port is one of those that explained attempts use.
func explains(port uint16) bool {
	return port >= firstPort && port <= lastPort && (port-firstPort)%portStep == 0
}

func (f *found) add(all []sighting) {
	for _, s := range all {
		same := func(t sighting) bool {
			t.at, t.number, t.code = s.at, s.number, s.code
			return s == t
		}
		list := &f.out
		if s.icmp {
			list = &f.errors
		} else if s.reply {
			list = &f.back
		}
		if !slices.ContainsFunc(*list, same) {
			*list = append(*list, s)
		}
	}
}

func (f *found) steps() (out []replica.Step) {
	for _, list := range [][]sighting{f.before, f.out, f.back, f.behind} {
		for _, s := range list {
			out = append(out, replica.Step{Space: s.space, Device: s.device, Out: s.out,
				Reply: s.reply, Src: s.src, Dst: s.dst})
		}
	}
	return out
}

// matched returns the events of a connection's packets, in order within each namespace.
func (w *watcher) matched(f found) (out []event) {
	ends := map[netip.AddrPort]bool{f.from: true}
	for _, s := range f.out {
		ends[s.src] = true
	}
	for _, s := range f.back {
		ends[s.dst] = true
	}
	for space, t := range w.spaces {
		for _, e := range t.events {
			if ends[e.Src] || ends[e.Dst] {
				out = append(out, event{e, space, ends[e.Dst] && !ends[e.Src]})
			}
		}
	}
	return out
}
