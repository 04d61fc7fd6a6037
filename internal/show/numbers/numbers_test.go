package numbers

import (
	"iter"
	"math"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// A third and a fourth mode failed.
func ran(t *testing.T) *judgetest.Run {
	t.Helper()
	cells := slices.Concat(judgetest.Trio(mode.Bridge, "bulk"), judgetest.Trio(mode.Bridge, "rr"))
	r := judgetest.New(t, append(cells, judgetest.HostCell(mode.PublishNAT, "bulk"))...)
	return r.Rounds(6, judgetest.Steady(8, 8, 4, 50, 50, 75, 1), func(v *sample.Visit) {
		if v.Cell == 6 {
			v.Failure = "client: refused"
		}
	})
}

func pick(figures iter.Seq[document.Figure], m mode.Name, load, metric string,
	s document.Statistic) (out []document.Figure) {
	for f := range figures {
		if f.Mode == string(m) && f.Load == load && f.Metric == metric && f.Statistic == s {
			out = append(out, f)
		}
	}
	return out
}

func one(t *testing.T, figures iter.Seq[document.Figure], m mode.Name, load, metric string,
	s document.Statistic) document.Figure {
	t.Helper()
	all := pick(figures, m, load, metric, s)
	if len(all) != 1 {
		t.Fatalf("%d figures %s of %s's %s under %s", len(all), s, m, metric, load)
	}
	return all[0]
}

func TestComparison(t *testing.T) {
	r := Cells(judge.Judge(ran(t).File).Base())
	rounds := pick(r, mode.Bridge, "bulk", workload.Throughput, document.Round)
	if len(rounds) != 6 || rounds[5].Round != 5 || rounds[5].Value != 4e9 ||
		rounds[5].Unit != "bit/s" || !rounds[5].Higher {
		t.Errorf("rounds %+v", rounds)
	}
	f := one(t, r, mode.Bridge, "bulk", workload.Throughput, document.Median)
	want := document.Subject{Study: "compare", Mode: "bridge", Label: "bridge", From: "host",
		To: "container", On: "lab", Load: "bulk",
		Servers: 1, Clients: 1, ClientProcs: 1}
	if f.Subject != want || f.Value != 4e9 || *f.Low != 4e9 || *f.High != 4e9 || f.N != 6 {
		t.Errorf("median %+v", f)
	}
	f = one(t, r, mode.Bridge, "bulk", workload.Throughput, document.Ratio)
	if f.Value != 0.5 || *f.Low != 0.5 || f.Unit != analysis.RatioUnit || f.Against != "host" ||
		f.Verdict != "worse" {
		t.Errorf("ratio %+v", f)
	}
	if f := one(t, r, mode.Host, "bulk", workload.Throughput, document.Median); !f.Baseline {
		t.Errorf("baseline %+v", f)
	}
	if got := pick(r, mode.Host, "bulk", workload.Throughput, document.Ratio); len(got) > 0 {
		t.Errorf("the baseline has the ratio %+v", got)
	}
	if f := one(t, r, mode.PublishNAT, "bulk", "", document.NoFigure); f.Note != "the visit failed: client: refused" {
		t.Errorf("failed %+v", f)
	}
	if f := one(t, r, mode.Bridge, "rr", "cpu_rest", document.Merged); f.Unit != "s" ||
		f.Value <= 0 {
		t.Errorf("CPU time %+v", f)
	}
}

func TestPrimaryIsFirst(t *testing.T) {
	seen := map[string]bool{}
	for f := range Cells(judge.Judge(ran(t).File).Base()) {
		if key := f.Mode + " " + f.Load; !seen[key] && f.Statistic != document.NoFigure {
			seen[key] = true
			if want := map[string]string{"bulk": workload.Throughput, "rr": workload.LatencyP50}[f.Load]; f.Metric != want {
				t.Errorf("%s: %s is first", key, f.Metric)
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("figures of %v", seen)
	}
}

func TestStop(t *testing.T) {
	r := judge.Judge(ran(t).File)
	for n := range 20 {
		seen := 0
		for range Cells(r.Base()) {
			if seen++; seen > n {
				break
			}
		}
		if seen != n+1 {
			t.Errorf("%d figures of %d", seen, n+1)
		}
	}
}

func TestCrowd(t *testing.T) {
	cells := judgetest.Trio(mode.Bridge, "bulk")
	for i := range cells {
		cells[i].Shape = sample.Shape{Servers: 1, Clients: 2, Procs: 3}
	}
	r := judgetest.New(t, cells...)
	r.File.Header.Plan.Study = sample.StudyScale
	r.Rounds(6, judgetest.Steady(8, 8, 4), func(v *sample.Visit) {
		v.Rates = [][]float64{{1e8, 1e8}, {1e8, 1e8}}
	})
	f := one(t, Cells(judge.Judge(r.File).Base()), mode.Bridge, "bulk", workload.Throughput,
		document.Median)
	if f.Study != string(sample.StudyScale) || f.Servers != 1 || f.Clients != 2 ||
		f.ClientProcs != 3 {
		t.Errorf("%+v", f)
	}
}

func TestLadder(t *testing.T) {
	var cells []sample.Cell
	for i, rung := range mode.Climb(mode.FromHost, "", []mode.Name{mode.Bridge}) {
		c := judgetest.Cell(rung.Mode, mode.FromHost, rung.To, "rr")
		if cells = append(cells, c); i == 0 {
			cells = append(cells, judgetest.Control(c))
		}
	}
	r := judgetest.New(t, cells...)
	r.File.Header.Plan.Study, r.File.Header.Plan.Baseline = sample.StudyLadder, string(mode.Native)
	r.Rounds(6, func(_, cell int) float64 { return float64(20 + 10*cell) })
	f := one(t, Ladder(ladder.Judge(r.File)), mode.Bridge, "", workload.LatencyP50, document.Part)
	if f.Study != string(sample.StudyLadder) || f.Against != string(mode.BridgeDefault) ||
		f.Note == "" || math.Abs(f.Value-10e-6) > 0.1e-6 {
		t.Errorf("%+v", f)
	}
}

func TestPrediction(t *testing.T) {
	judged, err := predict.Judge(ran(t).File, predict.Workload{Queries: 20, Bytes: 1, QPS: 100})
	if err != nil {
		t.Fatal(err)
	}
	p := Prediction(judged)
	if f := one(t, p, mode.Bridge, "", predict.Page, document.Median); f.Study != "predict" ||
		f.Unit != "s" || !judgetest.Near(f.Value, 20*75e-6) {
		t.Errorf("%+v", f)
	}
	if f := one(t, p, mode.Bridge, "", predict.Page, document.Added); f.Against != "host" ||
		!judgetest.Near(f.Value, 20*25e-6) {
		t.Errorf("%+v", f)
	}
	if got := pick(p, mode.Host, "", predict.Page, document.Added); len(got) > 0 {
		t.Errorf("the baseline costs %+v", got)
	}
}

func TestMesh(t *testing.T) {
	x := func(v float64) *float64 { return &v }
	m := &mesh.Mesh{Mode: "host", On: sample.Swarm,
		Nodes: []mesh.Node{{Node: sample.Node{Name: "a"}}, {Node: sample.Node{Name: "b"}}},
		Metrics: map[string]mesh.Metric{
			workload.LatencyP50: {Load: "rr", Unit: "s", Typical: 5, Links: 1,
				Matrix: [][]*float64{{nil, x(4)}, {x(4), nil}}},
			workload.Throughput: {Load: "bulk", Unit: "bit/s", Higher: true, Typical: 8, Links: 2,
				Matrix: [][]*float64{{nil, x(7)}, {x(9), nil}}},
		}, Failed: []mesh.Failed{{Nodes: []string{"a", "b"}, Load: "rr", Reason: "refused"}}}
	m.Nodes[1].Effects = map[string]mesh.Effect{workload.LatencyP50: {Ratio: 3, Of: 1}}
	r := Mesh(m)
	if got := pick(r, "host", "rr", workload.LatencyP50, document.Median); len(got) != 2 ||
		got[0].From != "a" || got[0].To != "b" || got[0].Value != 4 {
		t.Errorf("links of rr and their median: %+v", got)
	}
	if got := pick(r, "host", "bulk", workload.Throughput, document.Median); len(got) != 3 ||
		got[1].From != "b" || got[1].Value != 9 {
		t.Errorf("links of bulk and their median: %+v", got)
	}
	if f := one(t, r, "host", "bulk", workload.Throughput, document.Typical); f.Value != 8 ||
		f.N != 2 || !f.Higher || f.Study != string(sample.StudyMesh) {
		t.Errorf("typical: %+v", f)
	}
	if f := one(t, r, "host", "", workload.LatencyP50, document.Effect); f.From != "b" ||
		f.Value != 3 || f.Unit != analysis.RatioUnit {
		t.Errorf("effect: %+v", f)
	}
	if f := one(t, r, "host", "rr", "", document.NoFigure); f.From != "a" || f.To != "b" ||
		f.Note != "refused" {
		t.Errorf("failed: %+v", f)
	}
}

func TestOneRoundHasNoInterval(t *testing.T) {
	for _, rounds := range []int{1, 2} {
		r := judgetest.New(t, judgetest.Trio(mode.Bridge, "rr")...).Rounds(rounds,
			judgetest.Steady(50, 50, 75))
		p, err := predict.Judge(r.File, predict.Workload{Queries: 1, Bytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, all := range []iter.Seq[document.Figure]{
			Cells(judge.Judge(r.File).Base()), Prediction(p)} {
			for f := range all {
				if f.N > 0 && (f.Low != nil) != (f.N > 1) {
					t.Errorf("%d rounds: %+v", rounds, f)
				}
			}
		}
	}
}
