package recipe

import (
	"fmt"
	"maps"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// At is a place on a route of the catalogue.
type At struct {
	mode.Route
	index int
}

// Kind returns the kind of the hop there.
func (a At) Kind() mode.HopKind { return a.Hops[a.index] }

// First reports whether the route begins there.
func (a At) First() bool { return a.index == 0 }

// Last reports whether the route ends there.
func (a At) Last() bool { return a.index == len(a.Hops)-1 }

// Before reports whether a hop of the kind follows.
func (a At) Before(k mode.HopKind) bool { return slices.Contains(a.Hops[a.index+1:], k) }

// After reports whether a hop of the kind precedes.
func (a At) After(k mode.HopKind) bool { return slices.Contains(a.Hops[:a.index], k) }

// Away reports whether the place is on the clients' machine, and that is not the servers'.
func (a At) Away() bool { return !a.To.Outside() && a.Before(mode.HopWire) }

// Crossing is how the load crosses a bridge.
type Crossing int

const (
	Arriving  Crossing = iota // from the machine to the servers' containers
	Leaving                   // from the clients' containers to the machine
	Switched                  // from the clients' ports to the servers'
	FirstLeg                  // as Leaving, and later back over the same bridge
	SecondLeg                 // the way back
)

// Crosses returns how the load crosses the bridge there. apart means that clients in containers of
// the servers' machine are on another bridge than the servers.
func (a At) Crosses(apart bool) Crossing {
	before, after := a.index-1, a.index+1
	for before >= 0 && a.Hops[before].Rule() {
		before--
	}
	for after < len(a.Hops) && a.Hops[after].Rule() {
		after++
	}
	out := before >= 0 && At{a.Route, before}.ofClients()
	in := after < len(a.Hops) && At{a.Route, after}.ofServers()
	twice := a.From == mode.FromContainer && !a.To.Outside() && !apart
	switch {
	case out && in:
		return Switched
	case out && twice:
		return FirstLeg
	case out:
		return Leaving
	case in && twice:
		return SecondLeg
	}
	return Arriving
}

// ofServers reports whether the hop is the device of the servers' containers.
func (a At) ofServers() bool { return a.Last() && !a.To.Outside() && a.Kind().OfContainer() }

// ofClients reports whether the hop is the device of the clients' containers.
func (a At) ofClients() bool { return a.First() && !a.ofServers() && a.Kind().OfContainer() }

// Given has the hops that a recipe gives its path. The zero value is ready to use.
type Given struct {
	byKind   map[mode.HopKind]func(At) []path.Hop
	approach []path.Hop
}

// Give sets the path's hops of a kind. Without hops it does nothing.
func (g *Given) Give(k mode.HopKind, hops ...path.Hop) {
	if len(hops) > 0 {
		g.GiveAt(k, func(At) []path.Hop { return hops })
	}
}

// GiveAt sets the function that returns the path's hops of a kind that the route crosses more than
// once.
func (g *Given) GiveAt(k mode.HopKind, hops func(At) []path.Hop) {
	if g.byKind == nil {
		g.byKind = map[mode.HopKind]func(At) []path.Hop{}
	}
	g.byKind[k] = hops
}

// GiveBoth sets a kind's hop on the clients' machine and the one on the servers'.
func (g *Given) GiveBoth(k mode.HopKind, clients, servers path.Hop) {
	g.GiveAt(k, func(at At) []path.Hop {
		if at.Away() {
			return []path.Hop{clients}
		}
		return []path.Hop{servers}
	})
}

// Approach sets the first hops, which the clients' machine has made.
func (g *Given) Approach(hops []path.Hop) { g.approach = hops }

// assemble returns the hops of the longest way that the path has: its hops are there, and the
// recipe gave no other. rest returns the hops that are not given.
func (g *Given) assemble(ways []mode.Route, rest func(At) []path.Hop) (out []path.Hop, err error) {
	longest := -1
	for i, w := range ways {
		hops, missing := g.along(w, rest)
		switch {
		case missing == nil && (longest < 0 || len(w.Hops) > len(ways[longest].Hops)):
			out, longest = hops, i
		case err == nil:
			err = missing
		}
	}
	if longest < 0 {
		return nil, err
	}
	return out, nil
}

func (g *Given) along(w mode.Route, rest func(At) []path.Hop) (out []path.Hop, err error) {
	for _, k := range slices.Sorted(maps.Keys(g.byKind)) {
		if !slices.Contains(w.Hops, k) {
			return nil, fmt.Errorf("the path has %s, the catalogue says %s", k, w)
		}
	}
	for i, k := range w.Hops {
		hops := g.at(At{w, i}, rest)
		if len(hops) == 0 {
			return nil, fmt.Errorf("the path lacks %s, the catalogue says %s", k, w)
		}
		out = append(out, hops...)
	}
	return out, nil
}

func (g *Given) at(a At, rest func(At) []path.Hop) []path.Hop {
	if a.index < len(g.approach) {
		if h := g.approach[a.index]; h.Kind == a.Kind() {
			return []path.Hop{h}
		}
		return nil
	}
	if given := g.byKind[a.Kind()]; given != nil {
		return given(a)
	}
	return rest(a)
}
