package engine

import (
	"errors"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// What the hops of an epoch counted is compared with what crossed them, which may be the bytes of
// several cells: those of a baseline and its control, and on a real machine those of all cells
// whose paths have the hop. A device's counters are compared one by one, because a path may cross
// the device twice.

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
	for i, o := range all {
		if o.fate == told && o.path != g.path {
			moved[i].Resent += o.relayedAgain()
		}
	}
	hops := g.hops()
	for i := range hops {
		crossing, as := g.crossing(hops[i], all)
		hops[i].Clients = []int{} // not nil: the bytes of nobody
		for _, x := range crossing {
			if all[x.Client].fate == begun {
				g.err = errors.Join(errPartner, all[x.Client].err)
				return
			}
			hops[i].Clients = append(hops[i].Clients, x.Client)
		}
		if hops[i].Crossing = crossing; len(crossing) > 0 && hops[i].Expect == path.Untouched {
			hops[i].Expect = as
		}
	}
	g.visit.Proof = proof(hops, g.before, g.after, path.Witness(hops, g.before, g.after, moved...))
}

// relayedAgain returns the bytes that the relays on the guest's path sent again.
func (g *guest) relayedAgain() (bytes int64) {
	for i, h := range g.hops() {
		if h.Expect == path.Relays && i < len(g.before) && i < len(g.after) {
			bytes += int64(g.after[i].Sub(g.before[i]).ResentBytes)
		}
	}
	return bytes
}

// crossing returns whose bytes a hop or a guard of the guest's counts, in which of its counters,
// and how they cross it.
func (g *guest) crossing(h path.Hop, all []*guest) (who []path.Crossing, as path.Expect) {
	for i, o := range all {
		x := path.Crossing{Client: i}
		crosses := false
		for _, other := range o.path.Hops {
			takes, same := g.shares(h, o, other)
			if same {
				crosses, as = true, other.Expect
			}
			for k := range takes {
				x.Takes[k] = x.Takes[k].Or(takes[k])
			}
		}
		if crosses {
			who = append(who, x)
		}
	}
	if as == path.Carries || as == path.CarriesBoth {
		as = path.CarriesBoth
		for _, x := range who {
			if x.Takes[1] != (path.Ways{}) {
				as = path.Carries
			}
		}
	}
	return who, as
}

// shares returns which directions of another guest's bytes over its hop x the counters of hop h
// count, and whether they count any.
func (g *guest) shares(h path.Hop, o *guest, x path.Hop) (takes [2]path.Ways, any bool) {
	if g.path == o.path && h.Kind == x.Kind && h.Name == x.Name && h.Where == x.Where {
		return x.Takes(), true
	}
	mine, its := h.Counters(), x.Counters()
	for i, counter := range mine {
		for k, other := range its {
			if counter != nil && counter == other {
				takes[i], any = takes[i].Or(x.Takes()[k]), true
			}
		}
	}
	return takes, any
}

// errPartner is why a cell has no witness although nothing is wrong with it.
var errPartner = errors.New("its traffic cannot be verified, because another cell on the same path failed")
