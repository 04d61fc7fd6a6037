package path

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// thing identifies a device or rule on a machine that several paths share.
type thing struct {
	kind        mode.HopKind
	name, where string
}

type counter struct {
	thing  any
	where  string
	counts Counter
	back   bool
}

// Share marks the path's hops and guards for which ofMachine returns true as shared with other
// paths of the machine.
func Share(p *Path, ofMachine func(Hop) bool) {
	for _, hops := range [][]Hop{p.Hops, p.Guards} {
		for i, h := range hops {
			if h.Shared == nil && ofMachine(h) {
				hops[i].Shared = thing{h.Kind, h.Name, h.Where}
			}
		}
	}
}

// Counters returns values that identify the hop's forward and backward counters: hops of other
// paths with an equal value have the same counter. Both are nil if the hop belongs to this path
// alone.
func (h Hop) Counters() (out [2]any) {
	if h.Shared == nil {
		return out
	}
	_, named := h.Shared.(thing)
	for i, c := range h.Counts {
		switch {
		case h.Counts == [2]Counter{}:
			out[i] = counter{thing: h.Shared, back: i == 1}
		case c == Counter{}:
		case named:
			out[i] = counter{where: h.Where, counts: c}
		default:
			out[i] = counter{thing: h.Shared, counts: c}
		}
	}
	return out
}

// takes returns the directions of a client's bytes that the forward and backward counters count.
func (h Hop) takes() [2]Directions {
	if h.Expect == CarriesBoth || h.Expect == Delivers {
		return [2]Directions{{true, true}, {}}
	}
	return [2]Directions{{Forward: true}, {Backward: true}}
}

// Among returns the hops and guards of path p, adapted to what they count while all paths carry
// traffic. Each path has one client; Clients and Crossing refer to it by the path's index in all. A
// path may cross a device twice, so Among compares the device's counters one by one.
func Among(p *Path, all []*Path) []Hop {
	hops := slices.Concat(p.Hops, p.Guards)
	for i, h := range hops {
		crossing, as := h.among(p, all)
		hops[i].Clients = []int{} // not nil, which means all
		for _, x := range crossing {
			hops[i].Clients = append(hops[i].Clients, x.Client)
		}
		if hops[i].Crossing = crossing; len(crossing) > 0 && h.Expect == Untouched {
			hops[i].Expect = as
		}
	}
	return hops
}

// among returns the clients whose bytes the hop or guard counts, and what it must count of them.
func (h Hop) among(p *Path, all []*Path) (who []Crossing, as Expect) {
	for i, o := range all {
		x := Crossing{Client: i}
		crosses := false
		for _, other := range o.Hops {
			takes, same := h.shares(p == o, other)
			if same {
				crosses, as = true, other.Expect
			}
			for k := range takes {
				x.Takes[k] = x.Takes[k].or(takes[k])
			}
		}
		if crosses {
			who = append(who, x)
		}
	}
	if as == Carries || as == CarriesBoth {
		as = CarriesBoth
		for _, x := range who {
			if x.Takes[1] != (Directions{}) {
				as = Carries
			}
		}
	}
	return who, as
}

// shares returns, for each counter of h, the directions of a client's bytes that it counts if they
// cross hop x. any is false if h and x share no counter.
func (h Hop) shares(onePath bool, x Hop) (takes [2]Directions, any bool) {
	if onePath && h.Kind == x.Kind && h.Name == x.Name && h.Where == x.Where {
		return x.takes(), true
	}
	mine, its := h.Counters(), x.Counters()
	for i, counter := range mine {
		for k, other := range its {
			if counter != nil && counter == other {
				takes[i], any = takes[i].or(x.takes()[k]), true
			}
		}
	}
	return takes, any
}

// ResentByRelays returns the number of bytes that relays among the hops resent. before and after
// may be shorter than hops.
func ResentByRelays(hops []Hop, before, after []sample.Counters) (bytes int64) {
	for i, h := range hops {
		if h.Expect == Relays && i < len(before) && i < len(after) {
			bytes += int64(after[i].Sub(before[i]).ResentBytes)
		}
	}
	return bytes
}
