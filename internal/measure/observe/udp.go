package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// FindUDP finds the hops of the datagrams that do sends to an address from the network namespace of
// process from, 0 for this one, each of which is a request. dial opens a socket to that address,
// over which an empty datagram shows what a packet filter makes of the address. FindUDP returns
// do's error; unseen is why the hops were not found. The caller closes the Way.
//
// A datagram keeps its bytes through packet filters and relays. A relay is where it came in, and
// went out from another port, at which the namespace has a socket.
func FindUDP(ctx context.Context, from int, to netip.AddrPort, dial func() (net.Conn, error),
	do func() error) (y *Way, unseen, err error) {
	w, err := New()
	if err != nil {
		return nil, err, nil
	}
	w.anyBytes, w.dials, w.udp = true, true, true
	from = cmp.Or(from, os.Getpid())
	local := uint16(0)
	r, unseen, err := w.sentTo(ctx, from, func() (err error) {
		if local, err = touch(dial); err != nil {
			return err
		}
		return do()
	}, anyDatagram, func(seen []sighting) func(sighting) bool {
		to := []netip.AddrPort{to}
		for _, s := range seen {
			if s.src.Port() == local && s.sum == tokens.SumOf(&capture.Packet{}) {
				to = append(to, s.dst)
			}
		}
		return func(s sighting) bool { return slices.Contains(to, s.dst) && s.src.Port() != local }
	})
	if unseen != nil || err != nil {
		return nil, errors.Join(unseen, w.Close()), err
	}
	w.routes[""] = r
	return &Way{w: w, r: r}, nil, nil
}

// touch sends an empty datagram over a socket that dial opens, and returns its local port. It fails
// if the datagram is refused.
func touch(dial func() (net.Conn, error)) (local uint16, err error) {
	const refused = 50 * time.Millisecond // until that is known
	c, err := dial()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := c.Write(nil); err != nil {
		return 0, err
	}
	if err := c.SetReadDeadline(time.Now().Add(refused)); err != nil {
		return 0, err
	}
	if _, err := c.Read(make([]byte, 1)); errors.Is(err, unix.ECONNREFUSED) {
		return 0, fmt.Errorf("nothing receives datagrams there: %w", unix.ECONNREFUSED)
	}
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Port(), nil
}

// AttachUDP is Attach for a server whose requests come over UDP. dial opens a socket to it from
// this network namespace, over which an empty datagram finds the server.
func AttachUDP(ctx context.Context, dial func() (net.Conn, error),
	during time.Duration) (out *sample.Served, err error) {
	s, err := attachUDP(ctx, os.Getpid(), dial)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.watch(ctx, during)
}

func attachUDP(ctx context.Context, from int, dial func() (net.Conn, error)) (*serving, error) {
	w, err := New()
	if err != nil {
		return nil, err
	}
	w.udp = true
	local := uint16(0)
	r, unseen, err := w.sentTo(ctx, from, func() (err error) {
		local, err = touch(dial)
		return err
	}, emptyDatagram, func([]sighting) func(sighting) bool {
		return func(s sighting) bool { return s.src.Port() == local }
	})
	if err := errors.Join(unseen, err); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w.serve(ctx, r)
}

// errSilent means that a client sent nothing.
var errSilent = errors.New("the client sent no datagram there")

// anyDatagram returns a function that reports whether a datagram is remembered. There may be very
// many others'.
func anyDatagram() func(*capture.Packet) bool {
	const most = 200_000
	n := 0
	return func(*capture.Packet) bool {
		n++
		return n <= most
	}
}

// emptyDatagram returns a function that reports whether a datagram may find a server.
func emptyDatagram() func(*capture.Packet) bool {
	return func(p *capture.Packet) bool { return p.Size == 0 }
}

// sentTo finds the hops of the datagrams that do sends, among the marked ones. ours returns, for
// what was seen, what tells them where they leave the client's namespace.
func (w *Watch) sentTo(ctx context.Context, from int, do func() error,
	marked func() func(*capture.Packet) bool, ours func([]sighting) func(sighting) bool) (r *route, unseen,
	err error) {
	var busy []int
	for {
		seen, full, unseen, err := w.look(ctx, busy, marked(), do)
		if unseen != nil || err != nil {
			return nil, unseen, err
		}
		home, err := w.home(from)
		if err != nil {
			return nil, err, nil
		}
		first := ours(seen)
		if !slices.ContainsFunc(seen, func(s sighting) bool {
			return s.out && s.space == home && first(s)
		}) && !slices.Contains(full, home) {
			return nil, errSilent, nil
		}
		if r = w.trails(seen, home, first); r != nil {
			w.describe(r)
			return r, nil, nil
		}
		if len(full) == 0 {
			return nil, ErrUnseen, nil
		}
		if busy != nil {
			return nil, errFull, nil
		}
		busy = full
	}
}

// trails returns the hops that most requests of a client went over, or nil if none was received.
func (w *Watch) trails(seen []sighting, client int, first func(sighting) bool) (out *route) {
	const most = 64 // requests
	slices.SortStableFunc(seen, func(a, b sighting) int { return cmp.Compare(a.at, b.at) })
	var all []*route
	votes := map[*route]int{}
	for i, s := range seen {
		if !s.out || s.space != client || !first(s) || len(all) == most {
			continue
		}
		r := w.trail(seen[i:], client)
		if len(r.hops) == 0 {
			continue
		}
		all = append(all, r)
		for _, o := range all {
			if o.like(r) {
				votes[o]++
				break
			}
		}
	}
	for _, r := range all {
		if out == nil || votes[r] > votes[out] {
			out = r
		}
	}
	return out
}

// like reports whether two routes have the same hops.
func (r *route) like(o *route) bool {
	return slices.EqualFunc(r.hops, o.hops, hop.same)
}

// trail follows the first datagram of a list.
func (w *Watch) trail(seen []sighting, client int) *route {
	const soon = int64(time.Second)
	start := seen[0]
	r := &route{client: tokens.Client{Space: client}}
	ports := []uint16{start.src.Port()} // of who sent it
	addr := start.src.Addr()
	at := hop{space: -1} // where it came last
	sender := client
	for _, s := range seen {
		mine := slices.Contains(ports, s.src.Port())
		if s.sum != start.sum || s.at > start.at+soon {
			continue
		}
		switch {
		case at.space >= 0 && s.src.Port() == at.to.Port() && slices.Contains(ports, s.dst.Port()):
			return r.ends(at) // a reply of the same bytes
		case at.space >= 0 && s.out && s.space == sender && mine && s.at > start.at && len(r.hops) == 0 &&
			s.src == start.src && s.dst == start.dst:
			return r.ends(at) // the next request
		case mine && s.out && s.space == sender && sender == client && len(r.hops) == 0:
			r.dial(s.dst)
		case mine && s.out && s.space == sender:
			if p := (tokens.Place{Space: s.space, Port: s.dst.Port()}); !slices.Contains(at.from, p) {
				at.from = append(at.from, p)
			}
		case mine && !s.out:
			at.space, at.to = s.space, s.dst
		case s.out && at.space == s.space && s.src.Port() != at.to.Port() && w.bound(s.space, s.src):
			r.hops = slices.Insert(r.hops, 0, at)
			ports, addr, sender = []uint16{s.src.Port()}, s.src.Addr(), s.space
			at = hop{space: -1, from: []tokens.Place{{Space: s.space, Port: s.dst.Port()}}}
		case at.space >= 0 && s.src.Addr() != addr &&
			(s.out && s.space == at.space || !s.out && s.space != at.space):
			ports = append(ports, s.src.Port()) // a packet filter changed both
			if !s.out {
				at.space, at.to = s.space, s.dst
			}
		}
		if p := (tokens.Place{Space: s.space, Port: s.dst.Port()}); !slices.Contains(at.past, p) {
			at.past = append(at.past, p)
		}
	}
	return r.ends(at)
}

// ends adds the hop where a trail ends, if it was received there.
func (r *route) ends(at hop) *route {
	if at.space < 0 {
		r.hops = nil
		return r
	}
	r.hops = slices.Insert(r.hops, 0, at)
	return r
}

// bound reports whether a namespace has a UDP socket at an address, or at its port of all addresses.
func (w *Watch) bound(space int, at netip.AddrPort) (yes bool) {
	_ = w.spaces[space].Visit(func() error {
		all, err := sock.Datagram()
		yes = slices.ContainsFunc(all, func(s sock.Socket) bool {
			addr := s.Local.Addr().Unmap()
			return s.Local.Port() == at.Port() && (addr == at.Addr() || addr.IsUnspecified())
		})
		return err
	})
	return yes
}
