package mesh

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type tally struct {
	good, bad int
	last      string
}

func (t tally) add(v sample.PairVisit) tally {
	if v.Failure == "" {
		return tally{good: t.good + 1}
	}
	return tally{t.good, t.bad + 1, v.Failure}
}

// leftAfter is the number of partners in a row to which all visits of a node must have failed for
// the node to count as gone, if it had results before and the engine did not report it. For a pair,
// it is the number of sweeps.
const leftAfter = 2

func failedOfMesh(p sample.Plan, pairs []sample.PairVisit) []Failed {
	names := func(nodes ...int) (out []string) {
		for _, n := range nodes {
			out = append(out, p.Mesh.Nodes[n].Name)
		}
		return out
	}
	nodes := make([]tally, len(p.Mesh.Nodes))
	left := map[string]bool{}
	for _, v := range pairs {
		for _, i := range v.Pair {
			nodes[i] = nodes[i].add(v)
		}
		left[v.Left] = v.Left != ""
	}
	out := []Failed{}
	gone := make([]bool, len(nodes))
	for i, t := range nodes {
		// With two nodes, it is unknown which one failed.
		guess := len(nodes) > 2 && (t.bad >= leftAfter*p.VisitsInMode() || t.bad > 0 && t.good == 0)
		if known := left[p.Mesh.Nodes[i].Name] && t.bad > 0; !known && !guess {
			continue
		}
		gone[i] = true
		out = append(out, Failed{Nodes: names(i), Visits: t.bad, Left: t.good > 0, Reason: t.last})
	}
	for _, k := range failedLinks(pairs, gone) {
		out = append(out, Failed{Nodes: names(k.pair[0], k.pair[1]), Load: k.load, Visits: k.bad,
			Left: k.good > 0, Reason: k.last})
	}
	return out
}

type failedLink struct {
	pair sample.Pair
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
	links := map[key]tally{}
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
		lately := leftAfter
		if sample.BothWays(k.load) {
			lately *= 2
		}
		if t.good == 0 || t.bad >= lately {
			out = append(out, failedLink{k.pair, k.load, t})
		}
	}
	slices.SortFunc(out, func(a, b failedLink) int {
		return cmp.Or(slices.Compare(a.pair[:], b.pair[:]), strings.Compare(a.load, b.load))
	})
	return out
}
