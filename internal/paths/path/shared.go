package path

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// thing is a device or a rule of a machine with several paths.
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

// Share marks the hops and guards of a path that belong to a machine with other paths.
func Share(p *Path, ofMachine func(Hop) bool) {
	for _, hops := range [][]Hop{p.Hops, p.Guards} {
		for i, h := range hops {
			if h.Shared == nil && ofMachine(h) {
				hops[i].Shared = thing{h.Kind, h.Name, h.Where}
			}
		}
	}
}

// Counters identifies the hop's forward and backward counters: equal values of other paths' hops
// name the same counter. Both are nil if the hop is this path's own.
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

// Among returns the hops and guards of one of several paths as they count while all carry traffic.
// Each path has one client, whose index in all is that of Clients and Crossing. A path may cross a
// device twice, so its counters are compared one by one.
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

// among returns the clients whose bytes the hop or guard counts, and how they cross it.
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

// shares returns the directions of a client's bytes over hop x that each counter of h counts.
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

// ResentByRelays returns the bytes that relays among the hops resent. Readings may be missing.
func ResentByRelays(hops []Hop, before, after []sample.Counters) (bytes int64) {
	for i, h := range hops {
		if h.Expect == Relays && i < len(before) && i < len(after) {
			bytes += int64(after[i].Sub(before[i]).ResentBytes)
		}
	}
	return bytes
}
