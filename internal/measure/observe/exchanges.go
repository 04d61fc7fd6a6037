package observe

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Exchanges follows requests and replies that take turns on TCP connections, whatever their bytes
// are, while do runs a client in the network namespace of process from, 0 for this one.
//
// The hops are found by a few connections that dial opens and that carry nothing: it returns the
// local port. A relay is what another connection opens behind most of them, on which then exchanges
// of the same bytes happen within the client's. Exchanges returns do's error; unseen is why the
// exchanges could not be followed.
func Exchanges(ctx context.Context, from int, dial func() (local uint16, err error),
	do func() error) (e *sample.Evidence, unseen, err error) {
	w, err := New()
	if err != nil {
		return nil, err, do()
	}
	w.anyBytes = true
	defer func() {
		if errClose := w.Close(); err == nil {
			err = errClose
		}
	}()
	from = cmp.Or(from, os.Getpid())
	r, err := w.chase(ctx, from, dial)
	if err != nil {
		return nil, err, do()
	}
	w.routes[""] = r
	if err := w.Start(); err != nil {
		return nil, err, do()
	}
	w.mu.Lock()
	w.realtime = clock.Real()
	w.mu.Unlock()
	if err := do(); err != nil {
		return nil, nil, err
	}
	time.Sleep(2 * capture.Retire) // until blocks that are not full are passed on
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.drain(); err != nil {
		return nil, err, nil
	}
	if e, err = w.exchanges(r); err != nil {
		return nil, err, nil
	}
	e.ClockMoved = clockMoved(w.realtime)
	return e, nil, nil
}

// exchanges divides the exchanges over the hops that are on their way.
func (w *Watch) exchanges(r *route) (*sample.Evidence, error) {
	lost, err := w.lost(nil)
	if err != nil {
		return nil, err
	}
	hops, _ := settle(r.hops, func(hops []hop) (followed, all int) {
		rows, _, all := w.log.Turns(r.client, places(hops))
		return len(rows), all
	})
	rows, seen, all := w.log.Turns(r.client, places(hops))
	e := &sample.Evidence{Responses: all, ByOrder: len(rows), Lost: lost, Writes: true}
	sums := tokens.NewSums(len(hops) - 1)
	for i, rows := range rows {
		sums.Add(rows, 0)
		sums.AddWaits(&seen[i])
		e.Writes = e.Writes && seen[i].Wrote != nil
	}
	for _, h := range hops {
		e.Hops = append(e.Hops, h.about)
	}
	if len(rows) > 0 {
		sums.NoteParts(e)
		sums.NoteEpochs(e)
		e.Parts = e.Parts[:len(e.Parts)-1] // nothing is known of the client's own
	}
	return e, nil
}

func places(hops []hop) (out []tokens.Place) {
	for _, h := range hops {
		out = append(out, h.place())
	}
	return out
}

// settle leaves out hops that are not on the way of exchanges: others' connections that happened to
// be opened at the same times. follow returns the number of exchanges that are followed over some
// hops, and of all. settle returns the share that is followed over the best hops.
func settle(hops []hop, follow func([]hop) (followed, all int)) (best []hop, share float64) {
	const enough = 0.95
	best = hops
	for _, some := range within(hops) {
		followed, all := follow(some)
		x := float64(followed) / float64(max(1, all))
		if x > share {
			best, share = some, x
		}
		if all == 0 || x >= enough {
			break
		}
	}
	return best, share
}

// within returns the lists of hops, the longest first, that end with the client's.
func within(hops []hop) (out [][]hop) {
	const most = 6 // hops that may be left out
	n := min(len(hops)-1, most)
	for leave := range 1 << n {
		var some []hop
		for i, h := range hops {
			if i >= n || leave>>i&1 == 0 {
				some = append(some, h)
			}
		}
		out = append(out, some)
	}
	slices.SortStableFunc(out, func(a, b []hop) int { return len(b) - len(a) })
	return out
}

// chase finds the hops of the connections that dial opens. A hop counts if it is behind most of
// them, for a busy relay may be late.
func (w *Watch) chase(ctx context.Context, from int,
	dial func() (uint16, error)) (out *route, err error) {
	const times = 3
	var all []*route
	for range times {
		r, err := w.connected(ctx, from, dial)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	for _, r := range all {
		r.hops = slices.DeleteFunc(r.hops, func(h hop) bool {
			n := 0
			for _, o := range all {
				if o.has(h) {
					n++
				}
			}
			return 2*n <= times
		})
		if out == nil || len(r.hops) > len(out.hops) {
			out = r
		}
	}
	if len(out.hops) == 0 {
		return nil, ErrUnseen
	}
	for _, r := range all {
		out.dial(r.client.Dialled...)
	}
	w.describe(out)
	return out, nil
}

// past returns the namespaces in which the packet that opens a connection was seen, and the ports
// to which it went: in each of them all, because a bridge's port has it before its address changes.
func past(seen []sighting, seq uint32) (out []tokens.Place) {
	var spaces []int
	var ports []uint16
	for _, s := range seen {
		if s.opens && s.seq == seq {
			spaces, ports = append(spaces, s.space), append(ports, s.dst.Port())
		}
	}
	for _, space := range spaces {
		for _, port := range ports {
			if p := (tokens.Place{Space: space, Port: port}); !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// opened returns the hops of a client's connection from a port, and of those that were opened
// shortly after it.
func opened(seen []sighting, client int, local uint16) (*route, error) {
	const shortly = int64(100 * time.Millisecond)
	slices.SortStableFunc(seen, func(a, b sighting) int { return cmp.Compare(a.at, b.at) })
	r, err := (&route{client: tokens.Client{Space: client}}).enter(seen, local)
	if err != nil {
		return nil, err
	}
	own := seen[slices.IndexFunc(seen, func(s sighting) bool {
		return s.out && s.space == client && s.src.Port() == local
	})].seq
	came := map[uint32]sighting{} // by sequence number: where a connection came in last
	left := map[uint32]sighting{} // where it was opened
	var order []uint32
	for _, s := range seen {
		if s.out {
			if _, ok := left[s.seq]; !ok {
				left[s.seq] = s
			}
			continue
		}
		if _, ok := came[s.seq]; !ok && s.seq != own {
			order = append(order, s.seq)
		}
		came[s.seq] = s
	}
	for _, seq := range order {
		s := came[seq]
		h := hop{space: s.space, to: s.dst, past: past(seen, seq)}
		if from, ok := left[seq]; ok {
			h.from = []tokens.Place{{Space: from.space, Port: from.dst.Port()}}
			h = h.came(s, from)
		}
		if s.at > came[own].at && s.at < came[own].at+shortly && !r.has(h) {
			r.hops = slices.Insert(r.hops, 0, h)
		}
	}
	return r, nil
}
