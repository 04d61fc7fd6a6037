package comparison

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// judged is a cell of bulk or rr from the machine itself: its ratio with its half-width.
func judged(m mode.Name, to mode.Target, load string, ratio, half float64, v stats.Verdict) analysis.Cell {
	primary := analysis.Primary(sample.Load{Kind: load})
	c := analysis.Cell{Mode: string(m), From: string(mode.FromHost), To: string(to), Load: load, On: sample.Lab, Primary: primary, Baseline: v == ""}
	metric := analysis.Metric{Unit: "bit/s", Median: 1e9 * ratio, Higher: load == workload.Bulk}
	if v != "" {
		metric.Ratio = &analysis.Ratio{To: "host", Median: ratio, Low: ratio - half, High: ratio + half, N: 12, Verdict: v}
	}
	if load == workload.RR && v != "" {
		const base = 20e-6
		metric.Price = &analysis.Price{Unit: "s", Median: base * (ratio - 1), Low: base * (ratio - half - 1), High: base * (ratio + half - 1), N: 12}
	}
	c.Metrics = map[string]analysis.Metric{primary: metric}
	return c
}

func reported(cells ...analysis.Cell) *analysis.Report {
	r := &analysis.Report{}
	r.Plan.Baseline, r.Plan.Same = "host", 0.03
	r.Plan.Loads = []sample.Load{{Kind: workload.Bulk, Streams: 1}, {Kind: workload.RR}}
	r.Cells = cells
	return r
}

// The answer claims what the verdicts say, and names no winner that noise picked.
func TestAnswer(t *testing.T) {
	bridge := func(load string, ratio, half float64, v stats.Verdict) analysis.Cell {
		return judged(mode.Bridge, mode.ToContainer, load, ratio, half, v)
	}
	nat := func(load string, ratio, half float64, v stats.Verdict) analysis.Cell {
		return judged(mode.PublishNAT, mode.ToLoopback, load, ratio, half, v)
	}
	proxy := func(load string, ratio, half float64, v stats.Verdict) analysis.Cell {
		return judged(mode.PublishProxy, mode.ToLoopback, load, ratio, half, v)
	}
	host := judged(mode.Host, mode.ToLoopback, workload.Bulk, 1, 0, "")
	hostRR := judged(mode.Host, mode.ToLoopback, workload.RR, 1, 0, "")
	full := bridge(workload.Bulk, 1, 0.01, stats.Same)
	full.LimitedBy = string(mode.HopWire)
	full.Metrics[workload.CPUPerByte] = analysis.Metric{Ratio: &analysis.Ratio{To: "host", Median: 1.2, Low: 1.1, High: 1.3, N: 12, Verdict: stats.Worse}}
	for _, tt := range []struct {
		name  string
		cells []analysis.Cell
		want  []string
		not   string
	}{
		{"nothing-lost", []analysis.Cell{host, bridge(workload.Bulk, 1, 0.01, stats.Same)},
			[]string{"Should you use --network host?", "No. --network NAME is as fast as --network host, and isolates ports (the same within 3 %, or better)."}, ""},
		{"two-as-fast", []analysis.Cell{host, bridge(workload.Bulk, 1, 0.01, stats.Same), nat(workload.Bulk, 1.05, 0.01, stats.Better)},
			[]string{"No. --network NAME and -p 127.0.0.1 (NAT) are as fast"}, "costs least"},
		{"it-costs", []analysis.Cell{host, bridge(workload.Bulk, 0.86, 0.02, stats.Worse), hostRR, bridge(workload.RR, 1.2, 0.01, stats.Worse)},
			[]string{"It is faster. Among modes with port isolation, --network NAME costs least: it has 86 % (84–88) of the throughput and adds 4.0 µs (3.8–4.2) to the median latency."}, "No."},
		{"not-told-apart", []analysis.Cell{host, bridge(workload.Bulk, 0.86, 0.02, stats.Worse), nat(workload.Bulk, 0.85, 0.02, stats.Worse)},
			[]string{"--network NAME and -p 127.0.0.1 (NAT) cost least and cannot be told apart"}, "costs least"},
		{"one-load-each", []analysis.Cell{host, bridge(workload.Bulk, 1.1, 0.02, stats.Better), hostRR, bridge(workload.RR, 1.2, 0.01, stats.Worse)},
			[]string{"That depends on the load.", "it has 110 % (108–112) of the throughput and adds 4.0 µs"}, "It is faster"},
		{"unclear", []analysis.Cell{host, bridge(workload.Bulk, 0.9, 0.15, stats.Unclear)},
			[]string{"Not certain yet.", "seems to cost least: it has 75–105 % of the throughput.", "1 of 1 verdicts is unclear"}, "No."},
		{"published", []analysis.Cell{host, bridge(workload.Bulk, 1, 0.01, stats.Same), nat(workload.Bulk, 0.9, 0.01, stats.Worse), proxy(workload.Bulk, 0.4, 0.01, stats.Worse)},
			[]string{"A published port (-p): through NAT it has 90 % (89–91) of the throughput; through docker-proxy it has 40 % (39–41) of the throughput."}, "unclear"},
		{"wire", []analysis.Cell{host, full}, []string{"It is faster.", "fills the wire, with 120 % (110–130) of the CPU time"}, "No."},
		{"other-baseline", []analysis.Cell{host, judged(mode.Native, mode.ToLoopback, workload.Bulk, 1.05, 0.01, stats.Better)},
			[]string{"What does each mode cost?", "Throughput, of host's: better: no container 105 % (104–106)."}, "--network host?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := AnswerOf(reported(tt.cells...))
			said := a.Question + "\n" + strings.Join(a.Text, "\n")
			for _, w := range tt.want {
				if !strings.Contains(said, w) {
					t.Errorf("%q is not in:\n%s", w, said)
				}
			}
			if tt.not != "" && strings.Contains(said, tt.not) {
				t.Errorf("%q is in:\n%s", tt.not, said)
			}
		})
	}
	if a := AnswerOf(reported()); a != nil {
		t.Errorf("without cells: %+v", a)
	}
}

// Where there are several placements each sentence says of which it is.
func TestAnswerNamesPlacements(t *testing.T) {
	near := judged(mode.Bridge, mode.ToContainer, workload.Bulk, 1, 0.01, stats.Same)
	far := near
	far.From = string(mode.FromContainer)
	a := AnswerOf(reported(near, far))
	if len(a.Text) != 2 || !strings.HasPrefix(a.Text[0], "From the machine itself: No.") || !strings.HasPrefix(a.Text[1], "From another container: No.") {
		t.Errorf("%q", a.Text)
	}
}

// A cluster's users have another question, in their engine's words.
func TestAnswerInTheEnginesWords(t *testing.T) {
	for on, want := range map[string][2]string{
		"kubernetes": {"Should your pods use hostNetwork: true?", "No. pod IP is as fast as hostNetwork: true, and isolates ports"},
		"swarm":      {"Should your services use --network host?", "No. pod IP is as fast as --network host, and isolates ports"},
	} {
		c := judged(mode.Pod, mode.ToContainer, workload.Bulk, 1, 0.01, stats.Same)
		c.On = on
		if a := AnswerOf(reported(c)); a.Question != want[0] || !strings.HasPrefix(a.Text[0], want[1]) {
			t.Errorf("%s: %q %q", on, a.Question, a.Text)
		}
	}
}
