package sentence

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/scale"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestTemplatesOfCrowds(t *testing.T) {
	ratio := func(to string, x float64) *analysis.Ratio {
		return &analysis.Ratio{To: to, Median: x, Low: x - 0.01, High: x + 0.01, N: 12,
			Verdict: stats.Worse}
	}
	high := func(x float64) analysis.Metric { return analysis.Metric{Rounds: []float64{0, x}} }
	r := &analysis.Report{}
	r.Study, r.Plan.Loads = sample.StudyScale, []sample.Load{{Kind: workload.Bulk}}
	r.Cells = []analysis.Cell{{Cell: sample.Cell{Mode: "m", From: "container", Load: workload.Bulk,
		On: sample.Lab, Shape: sample.Shape{Servers: 1, Clients: 16, Procs: 1}},
		Metrics: map[string]analysis.Metric{
			workload.Throughput:     {Scaling: ratio("1×1×1", 0.6), Ratio: ratio("host", 0.9)},
			workload.ClientFairness: {Median: 0.98}, workload.Setup: high(0.25),
			workload.StartSpread: high(0.004), workload.Memory: high(40e6)}}}
	for code, want := range map[string]string{
		scale.Scaling: "Total throughput at 1×16×1, of that at 1×1×1: worse: m 60 % (59–61).",
		scale.AtSize:  "Total throughput at 1×16×1, of host's: worse: m 90 % (89–91).",
		scale.OneSize: "There is one size and one mode only: nothing to compare. Give " +
			"several, as in " +
			"--clients 1,4,16.",
		scale.Idle: "In most rounds a client process transferred nothing: m at 1×16×1.",
		scale.Growth: "m from another container, bulk: 1×16×1 delivers 60 % (59–61) of the " +
			"throughput of 1×1×1 (worse), and its clients share it with a fairness of " +
			"0.98; that is " +
			"90 % (89–91) of host's (worse).",
		scale.OneIdle: "m from another container at 1×16×1, bulk: in most rounds a " +
			"client process " +
			"transferred nothing.",
		scale.Largest: "The largest crowd, 1×16×1: 17 processes, started and connected " +
			"within 0.25 s, " +
			"the last one's first byte at most 4 ms after the common start, 40 MB of " +
			"memory at the peak.",
	} {
		f := analysis.Finding{Code: code, Load: workload.Bulk, From: "container", On: sample.Lab,
			Cells: []int{0}, N: 17}
		r.Found = []analysis.Finding{f}
		w := &writer{r: r}
		if got := w.fill(find(code).text, r.Found); got != want {
			t.Errorf("%s:\ngot  %q\nwant %q", code, got, want)
		}
	}
	if n := len(ofCrowds); n != 7 {
		t.Errorf("of %d templates 7 are tested", n)
	}
}
