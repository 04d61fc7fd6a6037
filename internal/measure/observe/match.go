package observe

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
)

// match looks for each request at each hop. It reports whether nothing is missing. A last call takes
// what there is.
func (v *Visit) match(pools [][]tokens.Seen, last bool) (complete bool, err error) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	if err := v.w.drain(); err != nil {
		return false, err
	}
	complete = true
	for i, h := range v.route.hops {
		if h.sealed {
			complete = v.sealed(i, h) && complete
			continue
		}
		pools[i] = append(pools[i], v.w.log.Take(h.place())...)
		left := v.byMark(i, &pools[i])
		if h.aside {
			complete = complete && !slices.ContainsFunc(left, func(a *asked) bool {
				return !a.repliedIn(pools[i], tokens.Aside) && !a.repliedIn(pools[i], tokens.Plain)
			})
			continue
		}
		complete = v.byText(i, &pools[i], left, last) && complete
	}
	for _, a := range v.asked {
		if chain := v.chainOf(a); chain != nil {
			_, missed := tokens.Divide(chain, &a.Asked)
			complete = complete && missed == 0
		}
	}
	return complete, nil
}

// chainOf returns what the hops that tokens pass saw of a request, or nil if one did not see it.
func (v *Visit) chainOf(a *asked) (out []tokens.Seen) {
	for _, i := range v.route.passed() {
		if !a.found[i] {
			return nil
		}
		out = append(out, a.chain[i])
	}
	return out
}

// leaveOut leaves hops out of the route that answered all requests aside, or before the server was
// asked. A hop that was left out is back once tokens may have come from it.
func (v *Visit) leaveOut(pools [][]tokens.Seen) {
	server := v.route.passed()[0]
	for i := range v.route.hops {
		aside, may := 0, false
		for _, a := range v.asked {
			plain := a.repliedIn(pools[i], tokens.Plain)
			before := plain && a.repliedBefore(pools[i])
			may = may || a.found[i] || plain && !before
			if before || a.repliedIn(pools[i], tokens.Aside) {
				aside++
			}
		}
		h := &v.route.hops[i]
		switch {
		case may:
			h.aside = false
		case aside > 0 && aside == len(v.asked):
			h.aside = h.aside || len(v.route.passed()) > 1
		}
	}
	// The writes of another hop are to be recorded.
	v.w.stale = v.w.stale || v.route.passed()[0] != server && !v.route.distant()
}

// sealed looks for requests at a hop by the bytes that the client counted.
func (v *Visit) sealed(i int, h hop) (all bool) {
	all = true
	front := v.route.hops[len(v.route.hops)-1].place()
	for _, a := range v.asked {
		if a.found[i] {
			continue
		}
		if s, ok := v.w.log.Sealed(v.route.client, h.place(), front, &a.Asked); ok {
			a.take(i, s, tokens.ByID)
		} else {
			all = false
		}
	}
	return all
}

// byMark looks for requests at a hop. It returns those that it does not find.
func (v *Visit) byMark(hop int, pool *[]tokens.Seen) (left []*asked) {
	for _, a := range v.asked {
		if a.found[hop] {
			continue
		}
		i, how := tokens.Pair(*pool, &a.Asked)
		if i < 0 {
			left = append(left, a)
			continue
		}
		a.take(hop, (*pool)[i], how)
		*pool = slices.Delete(*pool, i, i+1)
	}
	return left
}

// byText looks for requests at a hop. It takes them if it finds all of them, or anyway.
func (v *Visit) byText(hop int, pool *[]tokens.Seen, left []*asked, anyway bool) (all bool) {
	var requests []*tokens.Asked
	for _, a := range left {
		requests = append(requests, &a.Asked)
	}
	found := tokens.PairByText(*pool, requests)
	if all = !slices.Contains(found, -1); !all && !anyway {
		return false
	}
	var rest []tokens.Seen
	for i, s := range *pool {
		if k := slices.Index(found, i); k >= 0 {
			left[k].take(hop, s, tokens.ByText)
		} else {
			rest = append(rest, s)
		}
	}
	*pool = rest
	return all
}

// repliedIn reports whether a hop replied to the request in a way, by what it saw.
func (a *asked) repliedIn(pool []tokens.Seen, how tokens.Reply) bool {
	return slices.ContainsFunc(pool, func(s tokens.Seen) bool {
		return s.Reply == how && s.Mark == a.Mark
	})
}

// repliedBefore reports whether a hop had replied before one behind the hop that the client dials
// was asked, from which the tokens came: as what a gateway asks for the documents of a prompt.
func (a *asked) repliedBefore(pool []tokens.Seen) bool {
	for _, s := range pool {
		if s.Mark != a.Mark || s.Reply != tokens.Plain {
			continue
		}
		for i := range len(a.chain) - 1 {
			if a.found[i] && s.Replied != 0 && s.Replied <= a.chain[i].Came {
				return true
			}
		}
	}
	return false
}

func (a *asked) take(hop int, s tokens.Seen, how tokens.How) {
	a.chain[hop], a.found[hop], a.how = s, true, max(a.how, how)
}
