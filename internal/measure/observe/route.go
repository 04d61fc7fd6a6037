package observe

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// sighting is a packet with a request's mark.
type sighting struct {
	space    int
	out      bool
	src, dst netip.AddrPort
	seq      uint32
	at       int64
}

// mostSpaces bounds the namespaces in which a request is looked for.
const mostSpaces = 256

// ErrUnseen means that a route's server does not handle the request on this machine.
var ErrUnseen = errors.New("no process of this machine received the request in plain HTTP")

// Follow finds the hops of a route by a request, which ask makes with a mark from a client in the
// network namespace of process from, 0 for this one. It returns ask's error. unseen is why the
// route cannot be followed.
func (w *Watch) Follow(ctx context.Context, name string, from int, ask func() error) (unseen,
	err error) {
	spaces, err := netns.Find()
	if err != nil {
		return err, ask()
	}
	spaces = w.merge(spaces)
	rings, err := openAll(spaces)
	defer func() {
		for _, r := range rings {
			_ = r.Close()
		}
	}()
	if err != nil {
		return err, ask()
	}
	w.asking = name
	seen, err := w.look(ctx, rings, ask)
	w.asking = ""
	if err != nil {
		return nil, err
	}
	if from == 0 {
		from = os.Getpid()
	}
	home, err := netns.ID(from)
	if err != nil {
		return err, nil
	}
	r, err := routeOf(seen, slices.IndexFunc(spaces, func(f netns.Found) bool {
		return f.ID == home
	}))
	if err != nil {
		return err, nil
	}
	for i := range r.hops {
		h := &r.hops[i]
		h.about = sample.EvidenceHop{Process: process(spaces[h.space], h.port), Port: h.port,
			NetNS: spaces[h.space].ID}
	}
	w.routes[name] = r
	return nil, nil
}

// merge adds namespaces to those that are known, whose indexes stay, and returns all.
func (w *Watch) merge(found []netns.Found) []netns.Found {
	for _, f := range found {
		known := slices.ContainsFunc(w.spaces, func(g netns.Found) bool { return g.ID == f.ID })
		if known || len(w.spaces) == mostSpaces {
			_ = f.Close()
			continue
		}
		w.spaces = append(w.spaces, f)
	}
	return w.spaces
}

// openAll captures in all namespaces that this process may enter, of which there must be one.
func openAll(spaces []netns.Found) (rings []*ring, err error) {
	for i, s := range spaces {
		errVisit := s.Visit(func() error {
			r, err := capture.Open(capture.Small)
			if err == nil {
				rings = append(rings, &ring{r, i})
			}
			return err
		})
		err = errors.Join(err, errVisit)
	}
	if len(rings) > 0 {
		return rings, nil
	}
	return nil, err
}

// look returns where the request that ask makes was seen.
func (w *Watch) look(ctx context.Context, rings []*ring, ask func() error) (seen []sighting,
	err error) {
	const (
		often   = 10 * time.Millisecond
		quiet   = 3 * capture.Retire
		longest = time.Second
	)
	asked := make(chan error, 1)
	go func() { asked <- ask() }()
	answered, last := time.Time{}, time.Now()
	for {
		for _, r := range rings {
			r.Read(func(p *capture.Packet) {
				if len(p.Payload) > 0 && tokens.Marked(p.Payload, w.ours) {
					seen = append(seen, sighting{r.space, p.Out, p.Src, p.Dst, p.Seq, p.At})
					last = time.Now()
				}
			})
		}
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
		case time.Since(last) > quiet && len(seen) > 0, time.Since(answered) > longest,
			ctx.Err() != nil:
			return seen, nil
		}
		time.Sleep(often)
	}
}

// routeOf finds the hops of a request by where its packets were seen. A packet keeps its sequence
// number when a packet filter changes its addresses; who received it last handles the request.
func routeOf(seen []sighting, client int) (*route, error) {
	slices.SortStableFunc(seen, func(a, b sighting) int { return int(a.at - b.at) })
	r := &route{client: client}
	var order []uint32
	packets := map[uint32][]sighting{}
	for _, s := range seen {
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
		at := hop{space: to.space, port: to.dst.Port()}
		if !slices.ContainsFunc(r.hops, func(h hop) bool {
			return h.space == at.space && h.port == at.port
		}) {
			r.hops = slices.Insert(r.hops, 0, at)
		}
		if last := r.hops[len(r.hops)-1]; first.space == client && last.space == at.space &&
			last.port == at.port {
			r.dial(packets[seq])
		}
	}
	if len(r.hops) == 0 || len(r.dialed) == 0 {
		return nil, ErrUnseen
	}
	return r, nil
}

// dial notes the ports to which a client's packet left its namespace.
func (r *route) dial(packet []sighting) {
	for _, s := range packet {
		if s.out && s.space == r.client && !slices.Contains(r.dialed, s.dst.Port()) {
			r.dialed = append(r.dialed, s.dst.Port())
		}
	}
}

// process returns the name of the process that listens at a TCP port of a namespace, or "".
func process(space netns.Found, port uint16) (name string) {
	var inodes []uint32
	err := space.Visit(func() error {
		all, err := sock.Listeners()
		for _, s := range all {
			if s.Local.Port() == port {
				inodes = append(inodes, s.Inode)
			}
		}
		return err
	})
	if err != nil || len(inodes) == 0 {
		return ""
	}
	all, _ := os.ReadDir("/proc")
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		open, err := sock.Inodes(pid)
		if err == nil && slices.ContainsFunc(inodes, func(i uint32) bool { return open[i] }) {
			b, _ := os.ReadFile("/proc/" + e.Name() + "/comm")
			return printable.Words(strings.TrimSpace(string(b)))
		}
	}
	return ""
}
