package sentence

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func meshOf(nodes int, known bool) *mesh.Mesh {
	m := &mesh.Mesh{Sweeps: 5, Metrics: map[string]mesh.Metric{}}
	for i := range nodes {
		m.Nodes = append(m.Nodes, mesh.Node{Node: sample.Node{Name: "n" + string(rune('1'+i))}})
	}
	for _, name := range []string{workload.LatencyP50, workload.Throughput} {
		x := mesh.Metric{Links: nodes * (nodes - 1), OnePair: nodes == 2}
		if known {
			from := 1.25
			x.NamedFrom = &from
		}
		m.Metrics[name] = x
	}
	return m
}

func TestMeshAnswer(t *testing.T) {
	slow := mesh.Fault{Kind: mesh.FaultNode, Nodes: []string{"n2"}, Way: mesh.WayBoth,
		Metric: workload.LatencyP50,
		Ratio:  3}
	rate := 0.02
	lossy := mesh.Fault{Kind: mesh.FaultLink, Nodes: []string{"n1", "n3"}, Way: mesh.WayOut,
		Metric: workload.RetransmissionRate, RateOut: &rate}
	for _, tt := range []struct {
		name   string
		change func(*mesh.Mesh)
		nodes  int
		known  bool
		want   string
	}{
		{"healthy", nil, 3, true,
			"No: no node or link stands out of the noise in round trips and throughput. One " +
				"that is 1.25 times slower in round trips or 1.25 times slower in throughput " +
				"would have been reported."},
		{"noise-not-known", nil, 3, false,
			"5 sweeps of 3 nodes are too few to judge round trips and throughput."},
		{"one-metric", func(m *mesh.Mesh) { m.Metrics[workload.LatencyP50] = mesh.Metric{Links: 3} }, 3, true,
			"No: no node or link stands out of the noise in throughput. One that is 1.25 times " +
				"slower in throughput would have been reported. 5 sweeps of 3 nodes are too few " +
				"to judge round trips."},
		{"noisy", func(m *mesh.Mesh) {
			for name, x := range m.Metrics {
				from := 625.0
				x.NodesFrom = &from
				m.Metrics[name] = x
			}
		}, 3, true,
			"Too noisy to tell: only what is 625 times slower in round trips or 625 times " +
				"slower in throughput would have been reported."},
		{"two", func(m *mesh.Mesh) {
			m.Metrics[workload.LatencyP50] = mesh.Metric{Links: 1, OnePair: true}
		}, 2, true,
			"Neither direction of the link is slow against the other: one that is 1.25 times " +
				"slower in throughput would have been reported. With one pair of nodes there is " +
				"nothing to compare round trips with."},
		{"slow", func(m *mesh.Mesh) {
			m.Faults = []mesh.Fault{slow}
		}, 3, true, "n2 is slow: 300 % of the typical round trip."},
		{"few-sweeps", func(m *mesh.Mesh) { m.Faults, m.Sweeps = []mesh.Fault{slow}, 3 }, 3, true,
			"n2 is slow: 300 % of the typical round trip.\nThat is based on only 3 sweeps: run " +
				"more before you act on it (--rounds, --budget)."},
		{"both", func(m *mesh.Mesh) { m.Faults = []mesh.Fault{slow, lossy} }, 3, true,
			"n2 is slow: 300 % of the typical round trip.\nThe link between n1 and n3 loses " +
				"packets: 2.00 % retransmitted."},
		{"doubtful", func(m *mesh.Mesh) { m.Doubtful = 1 }, 3, true,
			"Nothing else stands out of the noise in round trips and throughput: what is 1.25 " +
				"times slower in round trips or 1.25 times slower in throughput would have been " +
				"reported.\n1 link was slow or lost packets in too few visits to be reported; " +
				"run more sweeps (--rounds, --budget)."},
		{"gone", func(m *mesh.Mesh) {
			m.Failed = []mesh.Failed{{Nodes: []string{"n3"}},
				{Nodes: []string{"n1", "n2"}, Load: "rr"}}
		}, 3, true,
			"n3 never answered.\nNothing else stands out of the noise in round trips and " +
				"throughput: what is 1.25 times slower in round trips or 1.25 times slower in " +
				"throughput would have been reported.\nWithout a result: 1 pair."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := meshOf(tt.nodes, tt.known)
			if tt.change != nil {
				tt.change(m)
			}
			if got := strings.Join(ofMeshTold(m).Text, "\n"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	if a := ofMeshTold(&mesh.Mesh{}); a != (*analysis.Answer)(nil) {
		t.Errorf("of nothing: %+v", a)
	}
	many := meshOf(9, true)
	for _, n := range many.Nodes {
		many.Faults = append(many.Faults, mesh.Fault{
			Kind: mesh.FaultNode, Nodes: []string{n.Name}, Way: mesh.WayBoth,
			Metric: workload.LatencyP50,
			Ratio:  2})
	}
	if text := ofMeshTold(many).Text; len(text) != 4 ||
		text[3] != "And 6 more are slow or lose packets." {
		t.Errorf("%q", text)
	}
}

func ofMeshTold(m *mesh.Mesh) *analysis.Answer {
	r := &mesh.Report{Mesh: m}
	r.Study, r.Found = sample.StudyMesh, m.Findings(nil)
	Fill(r)
	if r.Answer != nil && r.Answer.Question != "Is a node or a link at fault?" {
		return &analysis.Answer{Text: []string{r.Answer.Question}}
	}
	return r.Answer
}

// pointer returns a pointer to x.
func pointer(x float64) *float64 { return &x }

// twoMeshes returns a mesh of pods beside one of hosts, with faults of each kind.
func twoMeshes() *mesh.Report {
	m, below := meshOf(9, true), meshOf(9, true)
	m.Mode, below.Mode, m.Beside = "pod", "host", below
	m.NotWitnessed = "between pods"
	slow := func(kind, way, metric string, nodes ...string) mesh.Fault {
		return mesh.Fault{Kind: kind, Nodes: nodes, Way: way, Metric: metric, Ratio: 0.5,
			Low:  pointer(0.4),
			High: pointer(0.6), Slow: 6, Of: 7}
	}
	lossy := func(kind string, out, in *float64, nodes ...string) mesh.Fault {
		return mesh.Fault{Kind: kind, Nodes: nodes, Way: mesh.WayBoth, Slow: 6, Of: 7,
			Metric: workload.RetransmissionRate, RateOut: out, RateIn: in}
	}
	const trips, rate, node, link, group = workload.LatencyP50, workload.Throughput, mesh.FaultNode,
		mesh.FaultLink, mesh.FaultGroup
	below.Nodes[0].Effects = map[string]mesh.Effect{workload.ThroughputOut: {Ratio: 0.5, Slow: 6,
		Of: 7},
		mesh.ThroughputIn: {Ratio: 0.4, Slow: 5, Of: 7}}
	below.Metrics[workload.RetransmissionRate] = mesh.Metric{Typical: 0.001,
		NamedFrom: pointer(0.002)}
	below.Faults = []mesh.Fault{slow(node, mesh.WayBoth, trips, "n1"),
		slow(node, mesh.WayBoth, rate, "n1"),
		slow(node, mesh.WayOut, rate, "n1"), slow(node, mesh.WayIn, rate, "n1"),
		lossy(node, pointer(0.02), pointer(0.03), "n1"),
		slow(link, mesh.WayBoth, trips, "n2", "n3"), slow(link, mesh.WayBoth, rate, "n2", "n3"),
		slow(link, mesh.WayOut, rate, "n2", "n3"),
		lossy(link, pointer(0.02), pointer(0.03), "n2", "n3"),
		slow(group, mesh.WayBoth, trips, "n4", "n5"), slow(group, mesh.WayBoth, rate, "n4", "n5"),
		lossy(group, pointer(0.02), nil, "n4", "n5"), slow(link, mesh.WayBoth, trips, "n1", "n3")}
	cost := mesh.Cost{Ratio: 1.3, Low: pointer(1.2), High: pointer(1.4), NamedFrom: pointer(1.5),
		Faults: []mesh.Fault{slow(link, mesh.WayOut, rate, "n1", "n2"),
			slow(link, mesh.WayBoth, rate, "n1", "n2"), slow(group, mesh.WayBoth, rate, "n4", "n5"),
			slow(node, mesh.WayOut, rate, "n1"), slow(node, mesh.WayIn, rate, "n1"),
			slow(node, mesh.WayBoth, rate, "n1")}}
	m.Costs = map[string]mesh.Cost{trips: cost, rate: cost}
	m.Failed = []mesh.Failed{{Nodes: []string{"n9"}, Mode: "pod", Visits: 2},
		{Nodes: []string{"n8"}, Visits: 1, Load: "rr"},
		{Nodes: []string{"n1", "n2"}, Load: "rr", Visits: 3}}
	return &mesh.Report{Mesh: m}
}

func TestMeshTemplates(t *testing.T) {
	in := func(code, mode string, rows ...int) analysis.Finding {
		return analysis.Finding{Code: code, What: mode, Rows: rows, N: 2, Of: 3}
	}
	const host, pod, over = "host", "pod", "Over the host network: "
	const elsewhere = ", and the host network is not the cause."
	const trips, rate = workload.LatencyP50, workload.Throughput
	none := analysis.Finding{What: trips, Values: map[string]float64{mesh.NamedFrom: 12}}
	told := map[string]bool{}
	for _, tt := range []struct {
		f            analysis.Finding
		text, detail string
	}{
		{in(mesh.VisitsWitnessed, ""),
			"Every visit was witnessed: its bytes were counted wherever toll " +
				"could read counters. Not witnessed: between pods.", ""},
		{in(mesh.VisitsFailed, ""),
			"What is shown was witnessed; 2 of 3 visits failed and are left out. " +
				"Not witnessed: between pods.", ""},
		{in(mesh.NothingMeasuredOn, pod), "Nothing was measured on the pod network.", ""},
		{in(mesh.NodeUnanswered, "", 0), "n9 never answered over the pod network.",
			"n9 never answered over the pod network: it was not measured."},
		{in(mesh.NodeLeft, "", 0), "n9 left in the middle of the run over the pod network.",
			"n9 left in " +
				"the middle of the run over the pod network: the last 2 visits failed; its " +
				"values are from " +
				"before that."},
		{in(mesh.NodeLeft, "", 1), "n8 left in the middle of the run.",
			"n8 left in the middle of the run: the last visit failed; its values are " +
				"from before that."},
		{in(mesh.PairUnreached, "", 2),
			"n1 and n2 never reached each other: no visit of rr has a result.",
			""},
		{in(mesh.PairParted, "", 2),
			"n1 and n2 no longer reach each other: the last 3 visits of rr failed.", ""},
		{in(mesh.AtFault, host, 0, 1),
			"Slow link: n1 is slow: 50 % of the typical round trip, 50 % of " +
				"the typical throughput.", over +
				"n1 is slow: its round trips take 50 % (40–60) of the " +
				"typical time (6 of 7 links); it sends at 50 % of the typical rate (6 of " +
				"7 links) and " +
				"receives at 40 % of the typical rate (5 of 7 links)."},
		{in(mesh.AtFault, host, 2, 4),
			"Slow link: n1 is slow and loses packets: 50 % of the typical " +
				"throughput in what it sends, 3.00 % retransmitted.", over +
				"n1 is slow and loses packets: " +
				"it sends at 50 % of the typical rate (6 of 7 links) but receives well; of " +
				"what it sends " +
				"2.00 % is retransmitted, and 3.00 % of what it receives, where 0.10 % is " +
				"typical (6 of 7 " +
				"links)."},
		{in(mesh.AtFault, host, 3),
			"Slow link: n1 is slow: 50 % of the typical throughput in what it " +
				"receives.", over +
				"n1 is slow: it receives at 40 % of the typical rate (5 of 7 links) but " +
				"sends well."},
		{in(mesh.AtFault, host, 5, 6),
			"Slow link: The link between n2 and n3 is slow: 50 % of the " +
				"typical round trip, 50 % of the typical throughput.", over +
				"The link between n2 and n3 " +
				"is slow, while most other links of both are healthy: its round trips take 50 " +
				"% (40–60) of " +
				"the time of its nodes' other links (6 of 7 visits); its throughput is 50 % " +
				"(40–60) of that " +
				"of its nodes' other links, in both directions (6 of 7 visits)."},
		{in(mesh.AtFault, host, 7),
			"Slow link: The link between n2 and n3 is slow: 50 % of the typical " +
				"throughput from n2 to n3.", over +
				"The link between n2 and n3 is slow, while most other " +
				"links of both are healthy: n2 sends to n3 at 50 % (40–60) of the rate of " +
				"their other links " +
				"(6 of 7 visits), and the reverse direction is not slow."},
		{in(mesh.AtFault, host, 8), "A link that loses packets: The link between n2 and n3 loses " +
			"packets: 3.00 % retransmitted.", over +
			"The link between n2 and n3 loses packets, while " +
			"most other links of both are healthy: of what n2 sends to n3 2.00 % is " +
			"retransmitted, " +
			"3.00 % in the reverse direction, where 0.10 % is typical (6 of 7 visits)."},
		{in(mesh.AtFault, host, 9, 10),
			"Slow link: n4 and n5 are slow to the others: 50 % of the " +
				"typical round trip, 50 % of the typical throughput.", over +
				"n4 and n5 are healthy among " +
				"themselves and slow to the others: round trips to the others take 50 % " +
				"(40–60) of the time " +
				"inside the group (6 of 7 links); throughput to the others is 50 % (40–60) " +
				"of that inside " +
				"the group (6 of 7 links)."},
		{in(mesh.AtFault, host, 11),
			"A link that loses packets: n4 and n5 lose packets to the others: " +
				"2.00 % retransmitted.", over +
				"n4 and n5 are healthy among themselves and lose packets to " +
				"the others: of what passes between them and the others 2.00 % is " +
				"retransmitted, where " +
				"0.10 % is typical (6 of 7 links)."},
		{in(mesh.AlsoAtFault, host, 12), over +
			"The link between n1 and n3 is slow, by more than its " +
			"nodes: its round trips take 50 % (40–60) of the time of its nodes' other " +
			"links (6 of 7 " +
			"visits).", ""},
		{in(mesh.CostFault, trips, 0),
			"Slow CNI between n1 and n2: round trips take 50 % (40–60) of " +
				"what the CNI costs elsewhere" + elsewhere, ""},
		{in(mesh.AlsoCostFault, rate, 0),
			"Slow CNI from n1 to n2: throughput is 50 % (40–60) of what " +
				"the CNI leaves elsewhere" + elsewhere, ""},
		{in(mesh.CostFault, rate, 1),
			"Slow CNI between n1 and n2: throughput is 50 % (40–60) of what " +
				"the CNI leaves elsewhere" + elsewhere, ""},
		{in(mesh.CostFault, rate, 2),
			"Slow CNI between n4 and n5 and the others: throughput is 50 % " +
				"(40–60) of what the CNI leaves elsewhere" + elsewhere, ""},
		{in(mesh.CostFault, rate, 3),
			"Slow CNI on what n1 sends: throughput is 50 % (40–60) of what " +
				"the CNI leaves elsewhere" + elsewhere, ""},
		{in(mesh.CostFault, rate, 4),
			"Slow CNI on what n1 receives: throughput is 50 % (40–60) of what " +
				"the CNI leaves elsewhere" + elsewhere, ""},
		{in(mesh.CostFault, rate, 5),
			"Slow CNI on all links of n1: throughput is 50 % (40–60) of what " +
				"the CNI leaves elsewhere" + elsewhere, ""},
		{in(mesh.MoreFaults, ""), "And 2 more.", ""},
		{in(mesh.FewSweeps, ""), "That is based on only 5 sweeps: run more before you act on it " +
			"(--rounds, --budget).", ""},
		{in(mesh.DoubtfulLinks, ""), "2 links were slow or lost packets in too few visits to be " +
			"reported; run more sweeps (--rounds, --budget).", ""},
		{in(mesh.UndecidedLinks, ""),
			"2 links were slow on the pod network. The noise hides whether the " +
				"link or the CNI is the cause; run more sweeps (--rounds, --budget).",
			"2 links were slow on " +
				"the pod network. The noise hides whether the link or the CNI is the cause; " +
				"run more sweeps."},
		{in(mesh.TypicalCost, ""), "What the CNI costs on a typical link: round trips take 130 % " +
			"(120–140) of the time on the host network, throughput is 130 % (120–140) of it.", ""},
		{in(mesh.CostUnknown, ""),
			"What the CNI costs is not known: no link has a result in both networks.", ""},
		{in(mesh.PairsWithoutResult, ""), "Without a result: 2 pairs.", ""},
		{none, "No: no node or link stands out of the noise in round trips. One that is 12 " +
			"times slower " +
			"in round trips would have been reported.", ""},
		{in(mesh.NothingElse, trips),
			"Nothing else stands out of the noise in round trips: what is 0.00 " +
				"times slower in round trips would have been reported.", ""},
		{in(mesh.NeitherWay, rate),
			"Neither direction of the link is slow against the other: one that " +
				"is 0.00 times slower in throughput would have been reported.", ""},
		{in(mesh.TooNoisy, rate),
			"Too noisy to tell: only what is 0.00 times slower in throughput would " +
				"have been reported.", ""},
		{in(mesh.NotComparable, trips),
			"With one pair of nodes there is nothing to compare round trips with.", ""},
		{in(mesh.TooFewSweeps, trips), "5 sweeps of 9 nodes are too few to judge round trips.", ""},
		{in(mesh.NothingSlow, ""), nothing +
			"node is 2.00 times (throughput) slower than is typical, " +
			"and no link is 1.25 times (round trips) or 1.25 times (throughput) slower " +
			"than its nodes " +
			"explain. No link is reported as losing packets: that needs 0.20 % " +
			"retransmitted; 0.10 % is " +
			"typical.", ""},
		{in(mesh.NoLinkSlow, ""), nothing +
			"link is 1.25 times (round trips) or 1.25 times (throughput) " +
			"slower than its nodes explain. No link is reported as losing packets: that " +
			"needs 0.20 % " +
			"retransmitted; 0.10 % is typical.", ""},
		{in(mesh.NeitherWaySlow, ""),
			"Neither direction of the link is 1.25 times slower than the other. " +
				"No link is reported as losing packets: that needs 0.20 % retransmitted; 0.10 " +
				"% is typical.",
			""},
		{in(mesh.OnePairAlone, ""),
			"With one pair of nodes there is nothing to compare round trips with.",
			""},
		{in(mesh.NoiseUnknown, ""),
			"No fault can be reported: the noise is not known from 5 sweeps of 9 nodes.", ""},
		{in(mesh.NoCostFault, ""),
			"No link is reported as slow because of the CNI: it would have to cost " +
				"1.50 times (round trips) or 1.50 times (throughput) what it costs elsewhere.", ""},
		{in(mesh.OneCostAlone, ""),
			"With one pair of nodes there is no other link to compare the cost of " +
				"the CNI with.", ""},
		{in(mesh.CostsNotCompared, ""),
			"It is not known whether the CNI costs more on some links than on " +
				"others: use more sweeps or nodes.", ""},
	} {
		if tt.f.Code == "" {
			tt.f.Code = mesh.NoFault
		}
		told[tt.f.Code] = true
		r := twoMeshes()
		x := r.Mesh.Beside.Metrics[rate]
		x.NodesFrom = pointer(2)
		r.Mesh.Beside.Metrics[rate] = x
		w, as := &writer{study: r}, find(tt.f.Code)
		if got := w.fill(as.text, []analysis.Finding{tt.f}); got != tt.text {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.f.Code, got, tt.text)
		}
		if got := w.fill(as.detail, []analysis.Finding{tt.f}); got != tt.detail {
			t.Errorf("%s in detail:\ngot  %q\nwant %q", tt.f.Code, got, tt.detail)
		}
	}
	for _, x := range ofMeshes {
		if !told[x.code] {
			t.Errorf("%s is untested", x.code)
		}
	}
}

func TestOnlyPair(t *testing.T) {
	m := &mesh.Mesh{Mode: "overlay", Beside: &mesh.Mesh{Mode: "host"}, Costs: map[string]mesh.Cost{
		workload.Throughput: {OnePair: true,
			Links: []mesh.LinkCost{{Nodes: [2]string{"a", "b"}, Ratio: 0.5},
				{Nodes: [2]string{"b", "a"}, Ratio: 0.6}}}}}
	if got := typicalCost(m); got != "between a and b: throughput from a to b is 50 % of it, throughput "+
		"from b to a is 60 % of it" {
		t.Error(got)
	}
	link := mesh.Fault{Kind: mesh.FaultLink, Nodes: []string{"a", "b"}, Way: mesh.WayOut,
		Metric: workload.Throughput, Ratio: 0.5, Slow: 6, Of: 6}
	s := subject{m: meshOf(2, true), faults: []mesh.Fault{link}}
	for got, want := range map[string]string{
		s.briefly(): "50 % of the throughput that b sends with",
		s.effects(): "a sends to b at 50 % of the reverse direction's rate (6 of 6 visits)",
		s.atFaultFully(): "The link between a and b is slow, and which of the two is at fault " +
			"cannot be determined",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
