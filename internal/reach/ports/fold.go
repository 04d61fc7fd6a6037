package ports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// fewest is the smallest number of ports that are shown as a range.
const fewest = 3

// Fold groups items with consecutive ports. Groups are in the order of their first items. at
// returns an item's port and protocol. alike reports whether an item may join a group. Groups
// smaller than a range are split into single items.
func Fold[T any](items []T, at func(T) (uint16, string),
	alike func(group []T, next T) bool) [][]T {
	type place struct {
		port  uint16
		proto string
	}
	type run struct {
		at    []int // indexes of items
		items []T
	}
	var runs []*run
	ends := map[place][]*run{}
	for i, item := range items {
		port, proto := at(item)
		before, here := place{port - 1, proto}, place{port, proto}
		r := &run{}
		if n := slices.IndexFunc(ends[before], func(r *run) bool {
			return port != 0 && alike(r.items, item)
		}); n >= 0 {
			r = ends[before][n]
			ends[before] = slices.Delete(ends[before], n, n+1)
		} else {
			runs = append(runs, r)
		}
		r.at, r.items = append(r.at, i), append(r.items, item)
		ends[here] = append(ends[here], r)
	}
	var parts []run
	for _, r := range runs {
		if len(r.items) >= fewest {
			parts = append(parts, *r)
			continue
		}
		for i := range r.items {
			parts = append(parts, run{r.at[i:], r.items[i : i+1]})
		}
	}
	slices.SortFunc(parts, func(a, b run) int { return cmp.Compare(a.at[0], b.at[0]) })
	out := make([][]T, len(parts))
	for i, p := range parts {
		out[i] = p.items
	}
	return out
}

// InStep reports whether, with the next item, the servers' ports are all equal or increase by one
// each.
func InStep[T any](group []T, next T, port func(T) uint16) bool {
	n := len(group)
	last := port(group[n-1])
	step := port(next) - last
	return step <= 1 && (n == 1 || step == last-port(group[n-2]))
}

// Range returns text such as "80" or "3000-3350".
func Range(low, high uint16) string {
	if low == high {
		return strconv.Itoa(int(low))
	}
	return fmt.Sprintf("%d-%d", low, high)
}

// FoldNames joins consecutive ports such as "3000/tcp" into ranges such as "3000-3350/tcp".
func FoldNames(names []string) []string {
	at := func(name string) (uint16, string) {
		number, proto, _ := strings.Cut(name, "/")
		port, _ := strconv.ParseUint(number, 10, 16)
		return uint16(port), proto
	}
	var out []string
	for _, g := range Fold(names, at, func([]string, string) bool { return true }) {
		low, proto := at(g[0])
		high, _ := at(g[len(g)-1])
		if len(g) == 1 {
			out = append(out, g[0])
			continue
		}
		out = append(out, Range(low, high)+"/"+proto)
	}
	return out
}

// exposedNames returns texts such as "3000-3350/tcp (web:3000-3350)", or without a server that is not
// known.
func exposedNames(list []Exposed) []string {
	server := func(x Exposed) (string, uint16) {
		name, number, _ := cutLast(x.Server, ":")
		port, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return x.Server, 0
		}
		return name + ":", uint16(port)
	}
	port := func(x Exposed) uint16 { _, p := server(x); return p }
	at := func(x Exposed) (uint16, string) { return x.Port, x.Proto }
	var out []string
	for _, g := range Fold(list, at, func(g []Exposed, next Exposed) bool {
		a, _ := server(g[0])
		b, _ := server(next)
		return a == b && InStep(g, next, port)
	}) {
		first, last := g[0], g[len(g)-1]
		name, low := server(first)
		if low != 0 {
			name += Range(low, port(last))
		}
		text := Range(first.Port, last.Port) + "/" + first.Proto
		if name != unknownProgram {
			text += " (" + name + ")"
		}
		out = append(out, text)
	}
	return out
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
