package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// What the hops of an epoch counted is compared with what crossed them, which may be
// the bytes of several cells: those of a baseline and its control, and on a real machine
// of all cells whose paths have the hop.

// witness compares what the hops of each path counted with what moved on them.
func (r *run) witness(all []*guest) {
	r.readPaths(all, func(g *guest, c []sample.Counters) { g.after, g.readAgain = c, r.Clock.Now() })
	for _, g := range all {
		if g.err == nil {
			g.judgeHops(all)
		}
	}
}

// judgeHops makes the guest's witness.
func (g *guest) judgeHops(all []*guest) {
	moved := make([]path.Moved, len(all))
	for i, o := range all {
		if o.fate == told {
			seconds := time.Duration(g.readAgain - o.read).Seconds()
			moved[i] = o.ends.moved(o.load, o.servers, o.clients, seconds)[0]
		}
	}
	hops := g.hops()
	for i := range hops {
		crossing, as := g.crossing(hops[i], all)
		for _, k := range crossing {
			if all[k].fate == begun {
				g.err = errors.Join(errPartner, all[k].err)
				return
			}
		}
		if hops[i].Clients = crossing; len(crossing) > 0 {
			hops[i].Expect = as
		}
	}
	g.visit.Proof = proof(hops, g.before, g.after, path.Witness(hops, g.before, g.after, moved...))
}

// crossing are those whose bytes cross a hop or a guard of the guest's, and how. It is
// not nil: nobody's may.
func (g *guest) crossing(h path.Hop, all []*guest) (who []int, as path.Expect) {
	who = []int{}
	for i, o := range all {
		k := slices.IndexFunc(o.path.Hops, func(x path.Hop) bool { return g.same(h, o, x) })
		if k >= 0 {
			who, as = append(who, i), o.path.Hops[k].Expect
		}
	}
	return who, as
}

// same reports whether a hop of the guest's and one of another's are one thing.
func (g *guest) same(h path.Hop, o *guest, x path.Hop) bool {
	if g.path == o.path {
		return h.Kind == x.Kind && h.Name == x.Name && h.Where == x.Where
	}
	return h.Shared != nil && h.Shared == x.Shared
}

// errPartner says why a cell has no witness although nothing is wrong with it.
var errPartner = errors.New("its traffic cannot be verified, because another cell on the same path failed")
