package analysis

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// tally counts the visits to something, in their order.
type tally struct {
	good, bad int // bad: since the last good one
	last      string
}

func (t tally) add(v sample.PairVisit) tally {
	if v.Failure == "" {
		return tally{good: t.good + 1}
	}
	return tally{t.good, t.bad + 1, v.Failure}
}

// leftAfter is of how many partners in a row all visits of a node must have failed
// for it to have left.
const leftAfter = 2

// failedOfMesh lists nodes that never answered or that left, and pairs of other
// nodes that have no result under a load.
func failedOfMesh(p sample.Plan, pairs []sample.PairVisit) []MeshFailed {
	names := func(nodes ...int) (out []string) {
		for _, n := range nodes {
			out = append(out, p.Mesh.Nodes[n].Name)
		}
		return out
	}
	nodes := make([]tally, len(p.Mesh.Nodes))
	for _, v := range pairs {
		for _, i := range v.Pair {
			nodes[i] = nodes[i].add(v)
		}
	}
	out := []MeshFailed{}
	gone := make([]bool, len(nodes))
	for i, t := range nodes {
		if len(nodes) == 2 || t.bad < leftAfter*p.VisitsOfPair() && (t.bad == 0 || t.good > 0) {
			continue // of two, nobody knows which
		}
		gone[i] = true
		out = append(out, MeshFailed{Nodes: names(i), Visits: t.bad, Left: t.good > 0, Reason: t.last})
	}
	for _, k := range failedLinks(pairs, gone) {
		out = append(out, MeshFailed{Nodes: names(k.pair[0], k.pair[1]), Load: k.load, Visits: k.bad, Reason: k.last})
	}
	return out
}

// failedLink is a pair none of whose visits under a load is a result.
type failedLink struct {
	pair sample.Pair // in the nodes' order
	load string
	tally
}

func failedLinks(pairs []sample.PairVisit, gone []bool) []failedLink {
	type key struct {
		pair sample.Pair
		load string
	}
	of := func(v sample.PairVisit) key {
		return key{sample.Pair{min(v.Pair[0], v.Pair[1]), max(v.Pair[0], v.Pair[1])}, v.Load}
	}
	links := map[key]tally{} // only those that failed at all: there may be many
	for _, v := range pairs {
		if v.Failure != "" && !gone[v.Pair[0]] && !gone[v.Pair[1]] {
			links[of(v)] = tally{}
		}
	}
	for _, v := range pairs {
		if t, ok := links[of(v)]; ok {
			links[of(v)] = t.add(v)
		}
	}
	var out []failedLink
	for k, t := range links {
		if t.good == 0 {
			out = append(out, failedLink{k.pair, k.load, t})
		}
	}
	slices.SortFunc(out, func(a, b failedLink) int {
		return cmp.Or(slices.Compare(a.pair[:], b.pair[:]), strings.Compare(a.load, b.load))
	})
	return out
}
