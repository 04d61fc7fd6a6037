package sentence

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

const (
	fault      = "{over}{at_fault_fully}: {effects}."
	costs      = "Slow {layer} {cost_where}: {fault_cost}, and the {other_network} is not the cause."
	reported   = " would have been reported."
	nothing    = "Nothing is reported as slow: beyond the noise, no "
	linkSlower = "link is {links_from} slower than its nodes explain.{nothing_lost}"
	unmeasured = "What the {layer} costs is not known: no link has a result in both networks."
	undecided  = "{links} slow on the {network}. The noise hides whether the link or the {layer} is " +
		"the cause; run more sweeps"
	left        = "{node} left in the middle of the run{over_mode}"
	unanswering = "{node} never answered{over_mode}"
)

var ofMeshes = []template{
	{code: mesh.VisitsWitnessed, text: "Every visit was witnessed: its bytes were counted " +
		"{where_counted}.{not_witnessed}", details: 1},
	{code: mesh.VisitsFailed, text: "What is shown was witnessed; {n} of {of_n} visits failed " +
		"and are left out.{not_witnessed}", details: 1},
	{code: mesh.NodeUnanswered, text: unanswering + ".", detail: unanswering + ": it was not " +
		"measured.", most: all, details: 2},
	{code: mesh.NodeLeft, text: left + ".", detail: left + ": {since}; its values are from " +
		"before that.", most: all, details: 2},
	{code: mesh.PairUnreached, text: "{node} and {other_node} never reached each " +
		"other{over_mode}: no visit of {of_load} has a result.", details: 2},
	{code: mesh.PairParted, text: "{node} and {other_node} no longer reach each " +
		"other{over_mode}: {since}.", details: 2},
	{code: mesh.NothingMeasuredOn, text: "Nothing was measured on the {network_of}.", details: 3},

	{code: mesh.AtFault, text: "{kind}{at_fault}: {briefly}.", detail: fault, most: all,
		details: 4},
	{code: mesh.AlsoAtFault, text: fault, details: 4},
	{code: mesh.CostFault, text: costs, most: all, details: 4},
	{code: mesh.AlsoCostFault, text: costs, details: 4},
	{code: mesh.MoreFaults, text: "And {n} more{are_slow}.", most: all},
	{code: mesh.FewSweeps, text: "That is based on only {sweeps}: run more before you act on it " +
		"(--rounds, --budget).", most: all},
	{code: mesh.DoubtfulLinks, text: "{links} slow or lost packets in too few visits to be " +
		"reported; run more sweeps (--rounds, --budget).", most: all},
	{code: mesh.UndecidedLinks, text: undecided + " (--rounds, --budget).", detail: undecided +
		".", most: all, details: 4},
	{code: mesh.TypicalCost, text: "What the {layer} costs {typical}.", most: all, details: 3},
	{code: mesh.CostUnknown, text: unmeasured, most: all, details: 3},
	{code: mesh.PairsWithoutResult, text: "Without a result: {pairs}.", most: all},

	{code: mesh.NoFault, text: "No: no node or link stands out of the noise in {metrics}. One " +
		"that is {from_metrics}" + reported, most: all, item: "none", merge: alikeCode},
	{code: mesh.NothingElse, text: "Nothing else stands out of the noise in {metrics}: what is " +
		"{from_metrics}" + reported, most: all, item: "none", merge: alikeCode},
	{code: mesh.NeitherWay, text: "Neither direction of the link is slow against the other: one " +
		"that is {from_metrics}" + reported, most: all, item: "none", merge: alikeCode},
	{code: mesh.TooNoisy, text: "Too noisy to tell: only what is {from_metrics}" + reported,
		most: all, item: "none", merge: alikeCode},
	{code: mesh.NotComparable, text: "With one pair of nodes there is nothing to compare " +
		"{metrics} with.", most: all, item: "none", merge: alikeCode},
	{code: mesh.TooFewSweeps, text: "{sweeps} of {nodes} {are_few} to judge {metrics}.", most: all,
		item: "none", merge: alikeCode},

	{code: mesh.NothingSlow, text: nothing + "node is {nodes_from} slower than is typical, and " +
		"no " + linkSlower, details: 5},
	{code: mesh.NoLinkSlow, text: nothing + linkSlower, details: 5},
	{code: mesh.NeitherWaySlow, text: "Neither direction of the link is {way_from} times slower " +
		"than the other.{nothing_lost}", details: 5},
	{code: mesh.OnePairAlone, text: "With one pair of nodes there is nothing to compare round " +
		"trips with.", details: 5},
	{code: mesh.NoiseUnknown, text: "No fault can be reported: the noise is not known from " +
		"{sweeps} of {nodes}.", details: 5},
	{code: mesh.NoCostFault, text: "No link is reported as slow because of the {layer}: it " +
		"would have to cost {costs_from} what it costs elsewhere.", details: 6},
	{code: mesh.OneCostAlone, text: "With one pair of nodes there is no other link to compare " +
		"the cost of the {layer} with.", details: 6},
	{code: mesh.CostsNotCompared, text: "It is not known whether the {layer} costs more on some " +
		"links than on others: use more sweeps or nodes.", details: 6},
}

// alikeCode merges neighbours with the same code, which differ by their metrics.
func alikeCode(analysis.Finding, analysis.Finding) bool { return true }

var meshWords = words{
	"where_counted": ofMesh(func(m *mesh.Mesh) string {
		if m.NotWitnessed == "" {
			return "on each hop of its path"
		}
		return "wherever toll could read counters"
	}),
	"not_witnessed": ofMesh(func(m *mesh.Mesh) string {
		return told(m.NotWitnessed != "", " Not witnessed: "+m.NotWitnessed+".")
	}),
	"of_n":          of(func(f analysis.Finding) string { return fmt.Sprint(f.Of) }),
	"node":          ofFailed(func(f mesh.Failed) string { return f.Nodes[0] }),
	"other_node":    ofFailed(func(f mesh.Failed) string { return f.Nodes[1] }),
	"over_mode":     ofFailed(mesh.Failed.Over),
	"of_load":       ofFailed(func(f mesh.Failed) string { return f.Load }),
	"since":         ofFailed(failedSince),
	"network_of":    of(func(f analysis.Finding) string { return mesh.Network(f.What) }),
	"network":       ofMesh(func(m *mesh.Mesh) string { return mesh.Network(m.Mode) }),
	"other_network": ofMesh(func(m *mesh.Mesh) string { return mesh.Network(m.Beside.Mode) }),
	"layer":         ofMesh((*mesh.Mesh).Layer),

	"over": func(w *writer, fs []analysis.Finding) string {
		return told(w.mesh().Beside != nil, "Over the "+mesh.Network(fs[0].What)+": ")
	},
	"kind": ofSubject(func(s subject) string {
		switch {
		case !s.compared:
			return ""
		case s.faults[0].Metric == workload.RetransmissionRate:
			return "A link that loses packets: "
		}
		return "Slow link: "
	}),
	"at_fault":       ofSubject(subject.atFault),
	"at_fault_fully": ofSubject(subject.atFaultFully),
	"briefly":        ofSubject(subject.briefly),
	"effects":        ofSubject(subject.effects),
	"cost_where":     ofCost(costWhere),
	"fault_cost":     ofCost(faultCost),
	"are_slow": ofMesh(func(m *mesh.Mesh) string {
		return told(m.Beside == nil, " are slow or lose packets")
	}),
	"sweeps": ofMesh(func(m *mesh.Mesh) string { return units.Plural(m.Sweeps, "sweep") }),
	"nodes":  ofMesh(func(m *mesh.Mesh) string { return units.Plural(len(m.Nodes), "node") }),
	"pairs":  of(func(f analysis.Finding) string { return units.Plural(f.N, "pair") }),
	"links": func(_ *writer, fs []analysis.Finding) string {
		return units.Plural(fs[0].N, "link") + units.Agree(fs[0].N, " was", " were")
	},
	"typical": ofMesh(typicalCost),
	"metrics": func(_ *writer, fs []analysis.Finding) string {
		return joinedBy(fs, " and ", func(f analysis.Finding) string { return mesh.Noun(f.What) })
	},
	"from_metrics": func(_ *writer, fs []analysis.Finding) string {
		return joinedBy(fs, " or ", func(f analysis.Finding) string {
			return factor(f.Values[mesh.NamedFrom]) + " times slower in " + mesh.Noun(f.What)
		})
	},
	"are_few": ofMesh(func(m *mesh.Mesh) string {
		if m.Sweeps == 1 {
			return "is too little"
		}
		return "are too few"
	}),
	"links_from": ofThresholds(func(m *mesh.Mesh, metric string) *float64 {
		return m.Metrics[metric].NamedFrom
	}),
	"nodes_from": ofThresholds(func(m *mesh.Mesh, metric string) *float64 {
		if x := m.Metrics[metric]; x.NamedFrom != nil {
			return x.NodesFrom
		}
		return nil
	}),
	"costs_from": func(w *writer, _ []analysis.Finding) string {
		return thresholds(w.mesh(), func(m *mesh.Mesh, metric string) *float64 {
			return m.Costs[metric].NamedFrom
		})
	},
	"way_from": ofFirstMesh(func(m *mesh.Mesh) string {
		return factor(*m.Metrics[workload.Throughput].NamedFrom)
	}),
	"nothing_lost": ofFirstMesh(func(m *mesh.Mesh) string {
		x := m.Metrics[workload.RetransmissionRate]
		if x.NamedFrom == nil {
			return ""
		}
		return fmt.Sprintf(" No link is reported as losing packets: that needs %s retransmitted; %s is "+
			"typical.", rate(*x.NamedFrom), rate(x.Typical))
	}),
}

func (w *writer) mesh() *mesh.Mesh { return w.study.(*mesh.Report).Mesh }

// meshOf returns the mesh of a mode, by default of the one that is compared with another.
func (w *writer) meshOf(mode string) *mesh.Mesh {
	if m := w.mesh(); m.Beside != nil && m.Beside.Mode == mode {
		return m.Beside
	}
	return w.mesh()
}

func ofMesh(say func(*mesh.Mesh) string) blank {
	return func(w *writer, _ []analysis.Finding) string { return say(w.mesh()) }
}

// ofFirstMesh returns the words for a blank that is about the mode below, if there are two.
func ofFirstMesh(say func(*mesh.Mesh) string) blank {
	return ofMesh(func(m *mesh.Mesh) string {
		if m.Beside != nil {
			m = m.Beside
		}
		return say(m)
	})
}

func ofFailed(say func(mesh.Failed) string) blank {
	return func(w *writer, fs []analysis.Finding) string { return say(w.mesh().Failed[fs[0].Rows[0]]) }
}

func failedSince(f mesh.Failed) string {
	load := ""
	if len(f.Nodes) > 1 && f.Load != "" {
		load = " of " + f.Load
	}
	if f.Visits == 1 {
		return "the last visit" + load + " failed"
	}
	return fmt.Sprintf("the last %d visits%s failed", f.Visits, load)
}

func joinedBy(fs []analysis.Finding, by string, say func(analysis.Finding) string) string {
	var out []string
	for _, f := range fs {
		out = append(out, say(f))
	}
	return strings.Join(out, by)
}

var meshMetrics = []string{workload.LatencyP50, workload.Throughput}

func ofThresholds(of func(*mesh.Mesh, string) *float64) blank {
	return ofFirstMesh(func(m *mesh.Mesh) string { return thresholds(m, of) })
}

// thresholds lists those of the metrics that have one: "1.25 times (round trips)".
func thresholds(m *mesh.Mesh, of func(*mesh.Mesh, string) *float64) string {
	var out []string
	for _, metric := range meshMetrics {
		if x := of(m, metric); x != nil {
			out = append(out, fmt.Sprintf("%s times (%s)", factor(*x), mesh.Noun(metric)))
		}
	}
	return strings.Join(out, " or ")
}

func factor(x float64) string {
	const large = 10
	if x >= large {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// rate returns a share of retransmitted segments.
func rate(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }
