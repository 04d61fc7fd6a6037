package mesh

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func failedPairs(pairs []sample.PairVisit) int {
	n := 0
	for _, v := range pairs {
		if v.Failure != "" {
			n++
		}
	}
	return n
}

const listed = 8

// List joins names for use in a sentence. It counts those beyond the seventh, if there are several.
func List(names []string) string {
	if n := len(names); n > listed {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:listed-1], ", "), n-listed+1)
	}
	return printable.List(names)
}

func (m *Mesh) warnings(f *sample.File, fs fits) []analysis.Warning {
	out := analysis.BrokenOff(f)
	add := func(code, format string, args ...any) {
		out = append(out, analysis.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	if text := m.fewSweeps(f.End.Sweeps, fs); text != "" {
		add("few-sweeps", "%s", text)
	}
	if len(m.Nodes) == 2 {
		add("two-nodes",
			"with two nodes only the link between them can be reported: to find out which of them is slow, add a third")
	}
	if m.Doubtful > 0 {
		add("doubtful", "%s %s slow in too few visits to be reported: use more sweeps",
			units.Plural(m.Doubtful, "link"), units.Agree(m.Doubtful, "was", "were"))
	}
	if m.DoubtfulLoss > 0 {
		add("doubtful-loss", "%s lost packets in too few visits to be reported: use more sweeps",
			units.Plural(m.DoubtfulLoss, "link"))
	}
	if bad := failedPairs(f.Pairs); bad > 0 {
		last := ""
		for _, v := range f.Pairs {
			if v.Failure != "" {
				last = v.Failure
			}
		}
		add("failed-visits", "%d of %d visits failed and %s left out, the last one because: %s",
			bad, len(f.Pairs), units.Agree(bad, "is", "are"), last)
	}
	for _, names := range m.sharing(func(n Node) string { return n.Boot }) {
		add("same-machine", "%s are the same machine, so no network is measured between them",
			List(names))
	}
	if text := m.mtus(); text != "" {
		add("mtu", "the nodes' MTUs differ: %s", text)
	}
	return out
}

// fewSweeps returns the words for values that rest on too few sweeps, or "".
func (m *Mesh) fewSweeps(sweeps int, fs fits) string {
	var unknown []string
	for _, l := range loadsOfMesh {
		if fit := fs.of[l.metric]; fit != nil && fit.Visits > 0 && !fit.Known() && !fit.Alone {
			unknown = append(unknown, Noun(l.metric))
		}
	}
	switch {
	case len(m.Metrics) == 0:
	case len(unknown) > 0:
		return fmt.Sprintf(
			"with so few nodes, %s cannot tell what is slow in %s from noise; use more sweeps",
			units.Plural(sweeps, "sweep"), List(unknown))
	case sweeps < stats.MinJudged:
		return fmt.Sprintf("fewer than %d sweeps: each link's values are based on few visits",
			stats.MinJudged)
	}
	return ""
}

// mtus returns the nodes by MTU, in words, or "" if their known MTUs are equal.
func (m *Mesh) mtus() string {
	by := map[int][]string{}
	for _, n := range m.Nodes {
		if n.MTU > 0 {
			by[n.MTU] = append(by[n.MTU], n.Name)
		}
	}
	if len(by) < 2 {
		return ""
	}
	var parts []string
	for _, mtu := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d (%s)", mtu, List(by[mtu])))
	}
	return strings.Join(parts, ", ")
}

func (m *Mesh) sharing(what func(Node) string) [][]string {
	at := map[string]int{}
	var all [][]string
	for _, n := range m.Nodes {
		x := what(n)
		if x == "" {
			continue
		}
		i, ok := at[x]
		if !ok {
			i = len(all)
			at[x] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], n.Name)
	}
	return slices.DeleteFunc(all, func(names []string) bool { return len(names) < 2 })
}
