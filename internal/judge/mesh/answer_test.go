package mesh

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func meshOf(nodes int, known bool) *Mesh {
	m := &Mesh{Sweeps: 5, Metrics: map[string]Metric{}}
	for i := range nodes {
		m.Nodes = append(m.Nodes, Node{Node: sample.Node{Name: "n" + string(rune('1'+i))}})
	}
	for _, name := range []string{workload.LatencyP50, workload.Throughput} {
		x := Metric{Links: nodes * (nodes - 1), OnePair: nodes == 2}
		if known {
			from := 1.25
			x.NamedFrom = &from
		}
		m.Metrics[name] = x
	}
	return m
}

func TestAnswer(t *testing.T) {
	slow := Fault{Kind: FaultNode, Nodes: []string{"n2"}, Way: WayBoth, Metric: workload.LatencyP50,
		Ratio: 3}
	rate := 0.02
	lossy := Fault{Kind: FaultLink, Nodes: []string{"n1", "n3"}, Way: WayOut,
		Metric: workload.RetransmissionRate, RateOut: &rate}
	for _, tt := range []struct {
		name   string
		change func(*Mesh)
		nodes  int
		known  bool
		want   string
	}{
		{"healthy", nil, 3, true,
			"No: no node or link stands out of the noise in round trips and throughput. One that is 1.25 times slower in round trips or 1.25 times slower in throughput would have been reported."},
		{"noise-not-known", nil, 3, false,
			"5 sweeps of 3 nodes are too few to judge round trips and throughput."},
		{"one-metric", func(m *Mesh) { m.Metrics[workload.LatencyP50] = Metric{Links: 3} }, 3, true,
			"No: no node or link stands out of the noise in throughput. One that is 1.25 times slower in throughput would have been reported. 5 sweeps of 3 nodes are too few to judge round trips."},
		{"noisy", func(m *Mesh) {
			for name, x := range m.Metrics {
				from := 625.0
				x.NodesFrom = &from
				m.Metrics[name] = x
			}
		}, 3, true,
			"Too noisy to tell: only what is 625 times slower in round trips or 625 times slower in throughput would have been reported."},
		{"two", func(m *Mesh) {
			m.Metrics[workload.LatencyP50] = Metric{Links: 1, OnePair: true}
		}, 2, true,
			"Neither direction of the link is slow against the other: one that is 1.25 times slower in throughput would have been reported. With one pair of nodes there is nothing to compare round trips with."},
		{"slow", func(m *Mesh) {
			m.Faults = []Fault{slow}
		}, 3, true, "n2 is slow: 300 % of the typical round trip."},
		{"few-sweeps", func(m *Mesh) { m.Faults, m.Sweeps = []Fault{slow}, 3 }, 3, true,
			"n2 is slow: 300 % of the typical round trip.\nThat is based on only 3 sweeps: run " +
				"more before you act on it (--sweeps, --budget)."},
		{"both", func(m *Mesh) { m.Faults = []Fault{slow, lossy} }, 3, true,
			"n2 is slow: 300 % of the typical round trip.\nThe link between n1 and n3 loses packets: 2.00 % retransmitted."},
		{"doubtful", func(m *Mesh) { m.Doubtful = 1 }, 3, true,
			"Nothing else stands out of the noise in round trips and throughput: what is 1.25 times slower in round trips or 1.25 times slower in throughput would have been reported.\n1 link was slow or lost packets in too few visits to be reported; run more sweeps (--sweeps, --budget)."},
		{"gone", func(m *Mesh) {
			m.Failed = []Failed{{Nodes: []string{"n3"}}, {Nodes: []string{"n1", "n2"}, Load: "rr"}}
		}, 3, true,
			"n3 never answered.\nNothing else stands out of the noise in round trips and throughput: what is 1.25 times slower in round trips or 1.25 times slower in throughput would have been reported.\nWithout a result: 1 pair."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := meshOf(tt.nodes, tt.known)
			if tt.change != nil {
				tt.change(m)
			}
			if got := strings.Join(m.answer().Text, "\n"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	if a := (&Mesh{}).answer(); a != (*analysis.Answer)(nil) {
		t.Errorf("of nothing: %+v", a)
	}
	many := meshOf(9, true)
	for _, n := range many.Nodes {
		many.Faults = append(many.Faults, Fault{
			Kind: FaultNode, Nodes: []string{n.Name}, Way: WayBoth, Metric: workload.LatencyP50,
			Ratio: 2})
	}
	if text := many.answer().Text; len(text) != 4 ||
		text[3] != "And 6 more are slow or lose packets." {
		t.Errorf("%q", text)
	}
}
