package mesh

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

func (m *Mesh) findings(f *sample.File) []string {
	if len(m.Metrics) == 0 && !m.Empty() {
		return append(m.gone(), fmt.Sprintf("Nothing was measured on the %s.", Network(m.Mode)))
	}
	if len(m.Metrics) == 0 {
		return []string{"Nothing was measured."}
	}
	out := []string{"Every visit was witnessed: its bytes were counted on each hop of its path."}
	if m.NotWitnessed != "" {
		out[0] = "Every visit was witnessed: its bytes were counted wherever toll could read counters."
	}
	if bad := failedPairs(f.Pairs); bad > 0 {
		out[0] = fmt.Sprintf(
			"What is shown was witnessed; %d of %d visits failed and are left out.", bad,
			len(f.Pairs))
	}
	if m.NotWitnessed != "" {
		out[0] += " Not witnessed: " + m.NotWitnessed + "."
	}
	out = append(out, m.gone()...)
	if m.Beside != nil {
		return append(out, m.costFindings()...)
	}
	for _, subject := range m.subjects() {
		out = append(out, m.say(subject))
	}
	if len(m.Faults) == 0 {
		out = append(out, m.nothingSlow())
	}
	return out
}

func failedPairs(pairs []sample.PairVisit) int {
	n := 0
	for _, v := range pairs {
		if v.Failure != "" {
			n++
		}
	}
	return n
}

func (m *Mesh) subjects() [][]Fault {
	var out [][]Fault
	for _, x := range m.Faults {
		i := slices.IndexFunc(out, func(s []Fault) bool {
			return s[0].Kind == x.Kind && sameNodes(s[0].Nodes, x.Nodes)
		})
		if i < 0 {
			out = append(out, nil)
			i = len(out) - 1
		}
		out[i] = append(out[i], x)
	}
	return out
}

func sameNodes(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func (m *Mesh) say(faults []Fault) string {
	x := faults[0]
	switch x.Kind {
	case FaultGroup:
		return fmt.Sprintf("%s are healthy among themselves and %s to the others: %s.",
			list(x.Nodes), troubles(faults, "slow", "lose packets"), m.sayEach(faults, m.group))
	case FaultLink:
		who := "while most other links of both are healthy"
		switch {
		case m.onePair():
			who = "and which of the two is at fault cannot be determined"
		case slices.ContainsFunc(m.Faults, func(o Fault) bool {
			return o.Kind == FaultNode && slices.Contains(x.Nodes, o.Nodes[0])
		}):
			who = "by more than its nodes"
		}
		return fmt.Sprintf("The link between %s and %s %s, %s: %s.", x.Nodes[0], x.Nodes[1],
			troubles(faults, isSlow, losesPackets), who, m.sayEach(faults, m.link))
	}
	return fmt.Sprintf("%s %s: %s.", x.Nodes[0], troubles(faults, isSlow, losesPackets),
		m.sayEach(faults, m.node))
}

const (
	isSlow       = "is slow"
	losesPackets = "loses packets"
)

func (m *Mesh) sayEach(faults []Fault, say func(Fault) string) string {
	var parts []string
	for _, x := range faults {
		if x.Metric == workload.RetransmissionRate {
			parts = append(parts, m.loses(x))
			continue
		}
		parts = append(parts, say(x))
	}
	return strings.Join(parts, "; ")
}

func (x Fault) String() string { return ratioText(x.Ratio, x.Low, x.High) }

func (m *Mesh) group(x Fault) string {
	if x.Metric == workload.LatencyP50 {
		return fmt.Sprintf("round trips to the others take %s of the time inside the "+
			"group (%d of %d links)", x,
			x.Slow, x.Of)
	}
	return fmt.Sprintf("throughput to the others is %s of that inside the group "+
		"(%d of %d links)", x, x.Slow, x.Of)
}

func (m *Mesh) link(x Fault) string {
	how := fmt.Sprintf("(%d of %d visits)", x.Slow, x.Of)
	switch {
	case x.Metric == workload.LatencyP50:
		return fmt.Sprintf("its round trips take %s of the time of its nodes' other links %s", x,
			how)
	case m.onePair():
		return fmt.Sprintf("%s sends to %s at %s of the reverse direction's rate %s", x.Nodes[0],
			x.Nodes[1], x, how)
	case x.Way == WayBoth:
		return fmt.Sprintf(
			"its throughput is %s of that of its nodes' other links, in both directions %s", x, how)
	}
	return fmt.Sprintf(
		"%s sends to %s at %s of the rate of their other links %s, and the reverse direction is not slow", x.Nodes[0], x.Nodes[1], x, how)
}

func (m *Mesh) node(x Fault) string {
	if x.Metric == workload.LatencyP50 {
		return fmt.Sprintf("its round trips take %s of the typical time (%d of %d links)", x,
			x.Slow, x.Of)
	}
	n := m.Nodes[slices.IndexFunc(m.Nodes, func(n Node) bool { return n.Name == x.Nodes[0] })]
	say := func(does, effect string) string {
		e := n.Effects[effect]
		return fmt.Sprintf("%s at %s of the typical rate (%d of %d links)", does, e, e.Slow, e.Of)
	}
	switch x.Way {
	case WayOut:
		return "it " + say("sends", workload.ThroughputOut) + " but receives well"
	case WayIn:
		return "it " + say("receives", ThroughputIn) + " but sends well"
	}
	return "it " + say("sends", workload.ThroughputOut) + " and " + say("receives", ThroughputIn)
}

func (m *Mesh) nothingSlow() string {
	var links, nodes []string
	for _, l := range loadsOfMesh {
		x, ok := m.Metrics[l.metric]
		if !ok || x.NamedFrom == nil {
			continue
		}
		what := "(round trips)"
		if l.higher {
			what = "(throughput)"
		}
		links = append(links, factor(*x.NamedFrom)+" times "+what)
		if x.NodesFrom != nil {
			nodes = append(nodes, factor(*x.NodesFrom)+" times "+what)
		}
	}
	switch {
	case m.onePair() && m.Metrics[workload.Throughput].NamedFrom != nil:
		return fmt.Sprintf("Neither direction of the link is %s times slower than the other.",
			factor(*m.Metrics[workload.Throughput].NamedFrom)) + m.nothingLost()
	case m.onePair():
		return "With one pair of nodes there is nothing to compare round trips with."
	case len(links) == 0:
		return fmt.Sprintf("No fault can be reported: the noise is not known from %s of %s.",
			count(m.Sweeps, "sweep"), count(len(m.Nodes), "node"))
	case len(nodes) == 0:
		return fmt.Sprintf(
			"Nothing is reported as slow: beyond the noise, no link is %s slower than its nodes explain.", strings.Join(links, " or ")) + m.nothingLost()
	}
	return fmt.Sprintf(
		"Nothing is reported as slow: beyond the noise, no node is %s slower than is typical, and no link is %s slower than its nodes explain.",
		strings.Join(nodes, " or "), strings.Join(links, " or ")) + m.nothingLost()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

const listed = 8

// list joins names for use in a sentence.
func list(names []string) string {
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
		add("doubtful", "%s slow in too few visits to be reported: use more sweeps",
			were(m.Doubtful, "link"))
	}
	if m.DoubtfulLoss > 0 {
		add("doubtful-loss", "%s lost packets in too few visits to be reported: use more sweeps",
			count(m.DoubtfulLoss, "link"))
	}
	if bad := failedPairs(f.Pairs); bad > 0 {
		last := ""
		for _, v := range f.Pairs {
			if v.Failure != "" {
				last = v.Failure
			}
		}
		add("failed-visits", "%d of %d visits failed and are left out, the last one because: %s",
			bad, len(f.Pairs), last)
	}
	for _, names := range m.sharing(func(n Node) string { return n.Boot }) {
		add("same-machine", "%s are the same machine, so no network is measured between them",
			list(names))
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
			unknown = append(unknown, map[string]string{
				workload.LatencyP50: "round trips", workload.Throughput: "throughput"}[l.metric])
		}
	}
	switch {
	case len(m.Metrics) == 0:
	case len(unknown) > 0:
		return fmt.Sprintf(
			"with so few nodes, %s cannot tell what is slow in %s from noise; use more sweeps",
			count(sweeps, "sweep"), list(unknown))
	case sweeps < stats.MinJudged:
		return fmt.Sprintf("fewer than %d sweeps: each link's values are based on few visits",
			stats.MinJudged)
	}
	return ""
}

func were(n int, what string) string {
	if n == 1 {
		return "1 " + what + " was"
	}
	return count(n, what) + " were"
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
		parts = append(parts, fmt.Sprintf("%d (%s)", mtu, list(by[mtu])))
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
