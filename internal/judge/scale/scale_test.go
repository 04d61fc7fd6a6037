package scale_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/scale"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// Host and bridge have two shapes: one client, and two client containers with two processes each,
// one of which bridge starves. Rates are in Gbit/s (bulk) or round trips a second (rr).
func scaled(t *testing.T, load string) *analysis.Report {
	t.Helper()
	one, four := sample.Shape{Servers: 1, Clients: 1, Procs: 1},
		sample.Shape{Servers: 1, Clients: 2, Procs: 2}
	var cells []sample.Cell
	for _, s := range []sample.Shape{one, four} {
		host := judgetest.Cell(mode.Host, mode.FromContainer, mode.ToLoopback, load)
		bridge := judgetest.Cell(mode.Bridge, mode.FromContainer, mode.ToContainer, load)
		host.Shape, bridge.Shape = s, s
		cells = append(cells, host, judgetest.Control(host), bridge)
	}
	rates := [][][]float64{{{40}}, {{40}}, {{20}}, {{5, 5}, {5, 5}}, {{5, 5}, {5, 5}},
		{{8, 0}, {4, 4}}}
	r := judgetest.New(t, cells...)
	r.File.Header.Plan.Study = sample.StudyScale
	r.Rounds(6, judgetest.Steady(40, 40, 20, 20, 20, 16), func(v *sample.Visit) {
		unit := 1e9 / 8
		if load == "rr" {
			unit = 1
		}
		for _, client := range rates[v.Cell] {
			c := slices.Clone(client)
			for i := range c {
				c[i] *= unit
			}
			v.Rates = append(v.Rates, c)
		}
		v.Setup, v.Client.Late = 0.25, 0.004
		v.Client.RSS, v.Server.RSS = 30e6, 10e6
	})
	report := scale.Judge(r.File)
	sentence.Fill(report)
	return report
}

func TestScale(t *testing.T) {
	for load, unit := range map[string]float64{"bulk": 1e9, "rr": 1} {
		t.Run(load, func(t *testing.T) {
			r := scaled(t, load)
			var order []string
			for _, c := range r.Cells {
				order = append(order, string(c.Mode)+" "+c.Shape.String())
			}
			if want := []string{"host 1×1×1", "host 1×2×2", "bridge 1×1×1", "bridge 1×2×2"}; !slices.Equal(order, want) {
				t.Fatalf("rows %q, want %q", order, want)
			}
			last := r.Cells[3].Metrics
			for name, want := range map[string]float64{
				analysis.Rate(sample.Load{Kind: load}): 16 * unit, workload.ClientMean: 8 * unit,
				workload.ClientMin:       8 * unit,
				workload.ClientMax:       8 * unit,
				workload.ClientFairness:  1,
				workload.ProcessMin:      0,
				workload.ProcessFairness: 256.0 / (4 * 96),
				workload.Memory:          40e6,
				workload.Setup:           0.25,
				workload.StartSpread:     0.004,
			} {
				if got := last[name]; !judgetest.Near(got.Median, want) || len(got.Rounds) != 6 {
					t.Errorf("%s = %+v, want %v", name, got, want)
				}
			}
			rate := last[analysis.Rate(sample.Load{Kind: load})]
			if rate.Ratio == nil || !judgetest.Near(rate.Ratio.Median, 0.8) ||
				rate.Ratio.Verdict != stats.Worse || rate.Ratio.To != "host" {
				t.Errorf("against host: %+v", rate.Ratio)
			}
			if rate.Scaling == nil || !judgetest.Near(rate.Scaling.Median, 0.8) ||
				rate.Scaling.To != "1×1×1" {
				t.Errorf("against its first shape: %+v", rate.Scaling)
			}
			if x := r.Cells[2].Metrics[analysis.Rate(sample.Load{Kind: load})]; x.Scaling != nil ||
				!judgetest.Near(x.Ratio.Median, 0.5) {
				t.Errorf("the first shape: %+v", x)
			}
			if got := last[workload.ClientMean].Unit; got != workload.MetricOf(analysis.Rate(sample.Load{Kind: load}), sample.Load{}).Unit {
				t.Errorf("unit %q", got)
			}
			text := strings.Join(r.Findings, "\n")
			for _, want := range []string{
				"bridge from another container, " + load +
					": 1×2×2 delivers 80 % of the throughput " +
					"of 1×1×1 (worse), and its clients share it with a fairness of 1.00; that is " +
					"80 % of host's (worse).",
				"bridge from another container at 1×2×2, " + load +
					": in most rounds a client process transferred nothing.",
				"The largest crowd, 1×2×2: 5 processes, started and connected within 0.25 s, the " +
					"last one's first byte at most 4 ms after the common start, 40 MB of memory " +
					"at " +
					"the peak.",
			} {
				if !testgolden.HasLine(text, want) {
					t.Errorf("no line %q in %q", want, text)
				}
			}
			if len(r.Control.Groups) != 2 || r.Control.Groups[1].Shape.Clients != 2 {
				t.Errorf("noise floors %+v", r.Control.Groups)
			}
		})
	}
}
