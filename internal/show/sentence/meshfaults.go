package sentence

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// subject is a node, link or group with its faults.
type subject struct {
	m        *mesh.Mesh
	faults   []mesh.Fault
	compared bool // its mode is compared with another one
}

func ofSubject(say func(subject) string) blank {
	return func(w *writer, fs []analysis.Finding) string {
		s := subject{m: w.meshOf(fs[0].What), compared: w.mesh().Beside != nil}
		for _, i := range fs[0].Rows {
			s.faults = append(s.faults, s.m.Faults[i])
		}
		return say(s)
	}
}

// troubles returns what is wrong, given the words for slowness and for loss.
func (s subject) troubles(slow, loses string) string {
	switch n := len(s.faults); {
	case s.faults[n-1].Metric != workload.RetransmissionRate:
		return slow
	case n == 1:
		return loses
	}
	return slow + " and " + loses
}

func (s subject) atFault() string {
	x := s.faults[0]
	switch x.Kind {
	case mesh.FaultGroup:
		return nodeNames(x.Nodes) + " " + s.troubles("are slow", "lose packets") + " to the others"
	case mesh.FaultLink:
		return fmt.Sprintf("The link between %s and %s %s", x.Nodes[0], x.Nodes[1],
			s.troubles("is slow", "loses packets"))
	}
	return x.Nodes[0] + " " + s.troubles("is slow", "loses packets")
}

func (s subject) atFaultFully() string {
	x := s.faults[0]
	switch {
	case x.Kind == mesh.FaultGroup:
		return nodeNames(x.Nodes) + " are healthy among themselves and " +
			s.troubles("slow", "lose packets") + " to the others"
	case x.Kind != mesh.FaultLink:
		return s.atFault()
	case s.m.OnePair():
		return s.atFault() + ", and which of the two is at fault cannot be determined"
	case slices.ContainsFunc(s.m.Faults, func(o mesh.Fault) bool {
		return o.Kind == mesh.FaultNode && slices.Contains(x.Nodes, o.Nodes[0])
	}):
		return s.atFault() + ", by more than its nodes"
	}
	return s.atFault() + ", while most other links of both are healthy"
}

func (s subject) briefly() string {
	var say []string
	for _, x := range s.faults {
		switch x.Metric {
		case workload.LatencyP50:
			say = append(say, analysis.Percent(x.Ratio)+" of the typical round trip")
		case workload.Throughput:
			say = append(say, fmt.Sprintf("%.0f %% of %s", 100*x.Ratio, s.usual(x)))
		case workload.RetransmissionRate:
			worst := 0.0
			for _, rate := range []*float64{x.RateOut, x.RateIn} {
				if rate != nil {
					worst = max(worst, *rate)
				}
			}
			say = append(say, rate(worst)+" retransmitted")
		}
	}
	return strings.Join(say, ", ")
}

// usual returns what a throughput is compared with.
func (s subject) usual(x mesh.Fault) string {
	const typical = "the typical throughput"
	switch {
	case x.Kind == mesh.FaultLink && s.m.OnePair():
		return "the throughput that " + x.Nodes[1] + " sends with"
	case x.Way == mesh.WayBoth || x.Kind == mesh.FaultGroup:
		return typical
	case x.Kind == mesh.FaultLink:
		return typical + " from " + x.Nodes[0] + " to " + x.Nodes[1]
	case x.Way == mesh.WayOut:
		return typical + " in what it sends"
	}
	return typical + " in what it receives"
}

// slowWords are the effects of faults of a kind in a metric, if these do not depend on more.
var slowWords = map[[2]string]string{
	{mesh.FaultGroup, workload.LatencyP50}: "round trips to the others take %s of the time inside " +
		"the group",
	{mesh.FaultGroup, workload.Throughput}: "throughput to the others is %s of that inside the group",
	{mesh.FaultLink, workload.LatencyP50}: "its round trips take %s of the time of its nodes' other " +
		"links",
	{mesh.FaultNode, workload.LatencyP50}: "its round trips take %s of the typical time",
}

func (s subject) effects() string {
	var say []string
	for _, x := range s.faults {
		of := fmt.Sprintf(" (%d of %d links)", x.Slow, x.Of)
		if x.Kind == mesh.FaultLink {
			of = fmt.Sprintf(" (%d of %d visits)", x.Slow, x.Of)
		}
		switch text := slowWords[[2]string{x.Kind, x.Metric}]; {
		case text != "":
			say = append(say, fmt.Sprintf(text, x)+of)
		case x.Metric == workload.RetransmissionRate:
			say = append(say, s.loss(x)+of)
		case x.Kind == mesh.FaultLink:
			say = append(say, s.linkRate(x, of))
		default:
			say = append(say, s.nodeRates(x))
		}
	}
	return strings.Join(say, "; ")
}

func (s subject) linkRate(x mesh.Fault, visits string) string {
	switch {
	case s.m.OnePair():
		return fmt.Sprintf("%s sends to %s at %s of the reverse direction's rate%s", x.Nodes[0],
			x.Nodes[1], x, visits)
	case x.Way == mesh.WayBoth:
		return fmt.Sprintf("its throughput is %s of that of its nodes' other links, in both directions%s",
			x, visits)
	}
	return fmt.Sprintf("%s sends to %s at %s of the rate of their other links%s, and the reverse "+
		"direction is not slow", x.Nodes[0], x.Nodes[1], x, visits)
}

func (s subject) nodeRates(x mesh.Fault) string {
	n := s.m.Nodes[slices.IndexFunc(s.m.Nodes, func(n mesh.Node) bool { return n.Name == x.Nodes[0] })]
	say := func(does, effect string) string {
		e := n.Effects[effect]
		return fmt.Sprintf("%s at %s of the typical rate (%d of %d links)", does, e, e.Slow, e.Of)
	}
	switch x.Way {
	case mesh.WayOut:
		return "it " + say("sends", workload.ThroughputOut) + " but receives well"
	case mesh.WayIn:
		return "it " + say("receives", mesh.ThroughputIn) + " but sends well"
	}
	return "it " + say("sends", workload.ThroughputOut) + " and " + say("receives", mesh.ThroughputIn)
}

func (s subject) loss(x mesh.Fault) string {
	text := ""
	switch x.Kind {
	case mesh.FaultLink:
		text = fmt.Sprintf("of what %s sends to %s %s is retransmitted", x.Nodes[0], x.Nodes[1],
			rate(*x.RateOut))
		if x.RateIn != nil {
			text += ", " + rate(*x.RateIn) + " in the reverse direction"
		}
	case mesh.FaultGroup:
		text = fmt.Sprintf("of what passes between them and the others %s is retransmitted",
			rate(*x.RateOut))
	default:
		text = fmt.Sprintf("of what it sends %s is retransmitted, and %s of what it receives",
			rate(*x.RateOut), rate(*x.RateIn))
	}
	return text + ", where " + rate(s.m.Metrics[workload.RetransmissionRate].Typical) + " is typical"
}

func ofCost(say func(m *mesh.Mesh, metric string, x mesh.Fault) string) blank {
	return func(w *writer, fs []analysis.Finding) string {
		f := fs[0]
		return say(w.mesh(), f.What, w.mesh().Costs[f.What].Faults[f.Rows[0]])
	}
}

// costWhere returns where the mode costs more than is typical.
func costWhere(_ *mesh.Mesh, metric string, x mesh.Fault) string {
	switch {
	case x.Kind == mesh.FaultLink && (metric == workload.LatencyP50 || x.Way == mesh.WayBoth):
		return fmt.Sprintf("between %s and %s", x.Nodes[0], x.Nodes[1])
	case x.Kind == mesh.FaultLink:
		return fmt.Sprintf("from %s to %s", x.Nodes[0], x.Nodes[1])
	case x.Kind == mesh.FaultGroup:
		return fmt.Sprintf("between %s and the others", nodeNames(x.Nodes))
	case x.Way == mesh.WayOut:
		return "on what " + x.Nodes[0] + " sends"
	case x.Way == mesh.WayIn:
		return "on what " + x.Nodes[0] + " receives"
	}
	return "on all links of " + x.Nodes[0]
}

func faultCost(m *mesh.Mesh, metric string, x mesh.Fault) string {
	if metric == workload.Throughput {
		return fmt.Sprintf("throughput is %s of what the %s leaves elsewhere", x, m.Layer())
	}
	return fmt.Sprintf("round trips take %s of what the %s costs elsewhere", x, m.Layer())
}

// typicalCost returns what the mode costs on most links, or on the only one.
func typicalCost(m *mesh.Mesh) string {
	var parts []string
	where := "on a typical link"
	for _, metric := range meshMetrics {
		c, ok := m.Costs[metric]
		if ok && c.OnePair {
			where = fmt.Sprintf("between %s and %s", c.Links[0].Nodes[0], c.Links[0].Nodes[1])
		}
		switch {
		case !ok:
		case metric == workload.LatencyP50:
			parts = append(parts, fmt.Sprintf("round trips take %s of the time on the %s", c,
				mesh.Network(m.Beside.Mode)))
		case c.OnePair:
			for _, x := range c.Links {
				parts = append(parts, fmt.Sprintf("throughput from %s to %s is %s of it", x.Nodes[0],
					x.Nodes[1], x))
			}
		default:
			parts = append(parts, fmt.Sprintf("throughput is %s of it", c))
		}
	}
	return where + ": " + strings.Join(parts, ", ")
}
