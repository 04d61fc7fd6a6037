package scale_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/scale"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

var verdicts = []stats.Verdict{stats.Better, stats.Worse, stats.Same, stats.Unclear}

func answer(r *analysis.Report) *analysis.Answer {
	r.Study, r.Found = sample.StudyScale, scale.Findings(r)
	sentence.Fill(r)
	return r.Answer
}

// crowds are modes in one size and in a large one, with these verdicts relative to the small one
// and to the baseline; "" is a size without a result.
func crowds(vs []stats.Verdict) *analysis.Report {
	r := &analysis.Report{}
	r.Plan.Loads = []sample.Load{{Kind: workload.Bulk}}
	ratio := func(to string, v stats.Verdict) *analysis.Ratio {
		x := map[stats.Verdict]float64{stats.Better: 1.7, stats.Worse: 0.6, stats.Same: 1,
			stats.Unclear: 0.83}[v]
		return &analysis.Ratio{To: to, Median: x, Low: x - 0.01, High: x + 0.01, N: 12, Verdict: v}
	}
	for i, v := range vs {
		c := analysis.Cell{Cell: sample.Cell{Mode: mode.Name(fmt.Sprint("<m", i, ">")),
			From: mode.FromContainer, Load: workload.Bulk, On: sample.Lab,
			Shape: sample.Shape{Servers: 1, Clients: 1, Procs: 1}},
			Primary: workload.Throughput,
			Metrics: map[string]analysis.Metric{workload.Throughput: {}}}
		r.Cells = append(r.Cells, c)
		if v == "" {
			continue
		}
		c.Shape.Clients = 16
		c.Metrics = map[string]analysis.Metric{
			workload.Throughput: {Scaling: ratio("1×1×1", v), Ratio: ratio("host", v)}}
		r.Cells = append(r.Cells, c)
	}
	return r
}

func TestAnswerIsNoStrongerThanVerdicts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		vs := make([]stats.Verdict, 1+rnd.IntN(5))
		for i := range vs {
			vs[i] = append(verdicts, "")[rnd.IntN(len(verdicts)+1)]
		}
		for _, line := range answer(crowds(vs)).Text {
			if !strings.HasPrefix(line, "Total throughput at 1×16×1, of ") {
				continue
			}
			_, lists, _ := strings.Cut(strings.TrimSuffix(line, "."), ": ")
			for list := range strings.SplitSeq(lists, "; ") {
				head, names, _ := strings.Cut(list, ": ")
				for i, v := range vs {
					name := fmt.Sprint("<m", i, ">")
					if in := strings.Contains(names, name); in != (string(v) == head) {
						t.Errorf("%v: %s under %q:\n%s", vs, name, head, line)
					}
				}
				if differ := head == string(stats.Better) || head == string(stats.Worse); differ != strings.Contains(names, "%") {
					t.Errorf("figures under %q:\n%s", head, line)
				}
			}
		}
	}
	got := strings.Join(answer(crowds([]stats.Verdict{stats.Unclear, stats.Unclear})).Text, "\n")
	if want := "Total throughput at 1×16×1, of that at 1×1×1: unclear: <m0>, <m1>.\nTotal " +
		"throughput at 1×16×1, of host's: unclear: <m0>, <m1>.\n4 of 4 verdicts are unclear: " +
		"measure longer (--budget) or on a quieter machine."; got != want {
		t.Errorf("of what is unclear it says %q, want %q", got, want)
	}
}

func TestAnswerOfOneSize(t *testing.T) {
	if a := answer(&analysis.Report{}); a != nil {
		t.Errorf("of nothing: %+v", a)
	}
	a := answer(crowds([]stats.Verdict{""}))
	if len(a.Text) != 1 || !strings.HasPrefix(a.Text[0], "There is one size and one mode only") {
		t.Errorf("%q", a.Text)
	}
	idle := crowds([]stats.Verdict{stats.Better})
	idle.Cells[1].Metrics[workload.ProcessMin] = analysis.Metric{
		Rounds: make([]float64, stats.MinJudged)}
	if said := strings.Join(answer(idle).Text, "\n"); !testgolden.HasLine(said,
		"In most rounds a client process transferred nothing: <m0> at 1×16×1.") {
		t.Errorf("of a process without bytes it says:\n%s", said)
	}
}
