package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/comparison"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/scale"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/documenttest"
)

func ofCells(r *analysis.Report) []analysis.Finding {
	found, unsure := comparison.OfCells(r, false)
	return append(found, unsure...)
}

func answered() *analysis.Report {
	r := usual()
	r.Plan.Same = 0.03
	for _, c := range r.Cells {
		m, ok := c.Metrics[workload.LatencyP50]
		if x := m.Ratio; ok && x != nil {
			one := m.Median / x.Median
			m.Price = &analysis.Price{Unit: "s", Median: one * (x.Median - 1),
				Low: one * (x.Low - 1), High: one * (x.High - 1), N: x.N, Verdict: stats.Costs}
			c.Metrics[workload.LatencyP50] = m
		}
	}
	r.Found = ofCells(r)
	return r
}

func summary(t *testing.T, r judge.Report, o format.Options) string {
	t.Helper()
	b := written(t, "table", Summary(r), o)
	return b
}

func TestSummary(t *testing.T) {
	d := Summary(answered())
	for _, columns := range []int{60, 79, format.DefaultWidth} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			got := summary(t, answered(), format.Options{Width: columns})
			if columns != 79 {
				golden(t, fmt.Sprintf("summary-%d.txt", columns), got)
			}
			for l := range strings.Lines(got) {
				if w := ansi.StringWidth(strings.TrimSuffix(l, "\n")); w > columns {
					t.Errorf("%d columns: %q", w, l)
				}
			}
			whole(t, d, got)
		})
	}
	t.Run("color", func(t *testing.T) {
		colored := summary(t, answered(), format.Options{Color: true, Width: 79})
		if plain := summary(t, answered(), format.Options{Width: 79}); uncolored(colored) != plain {
			t.Error("colour changes more than colour")
		}
	})
}

// Between two CPU placements, only docker-proxy's latency differs. publish-nat has no result on
// separate CPUs.
func sideways() *analysis.Report {
	r := head()
	r.Plan.Same = 0.03
	r.Plan.Pin = "far,near"
	r.Plan.Pins = []sample.Pinning{
		{Name: sample.PinFar, CPUs: sample.CPUs{
			Client: []int{0}, Server: []int{1}, Distance: sample.SharedCache}},
		{Name: sample.PinNear, CPUs: sample.CPUs{
			Client: []int{0}, Server: []int{0}, Relay: []int{0}, SameCore: true,
			Distance: sample.SharedCPU}},
	}
	at := func(pin string, cells ...analysis.Cell) {
		for _, c := range cells {
			c.Pin = pin
			if m := c.Metrics[workload.LatencyP50]; c.Load == workload.RR && m.Ratio != nil {
				x, one := m.Ratio, m.Median/m.Ratio.Median
				m.Price = &analysis.Price{Unit: "s", Median: one * (x.Median - 1),
					Low: one * (x.Low - 1), High: one * (x.High - 1), N: x.N, Verdict: stats.Costs}
				c.Metrics[workload.LatencyP50] = m
			}
			r.Cells = append(r.Cells, c)
		}
	}
	at(sample.PinFar, bulk(mode.Host, mode.ToLoopback, 48, 1, 0, ""),
		bulk(mode.Bridge, mode.ToContainer, 46, 0.95, 0.01, stats.Worse),
		bulk(mode.PublishProxy, mode.ToLoopback, 24, 0.5, 0.01, stats.Worse))
	at(sample.PinNear, bulk(mode.Host, mode.ToLoopback, 56, 1, 0, ""),
		bulk(mode.Bridge, mode.ToContainer, 53, 0.94, 0.01, stats.Worse),
		bulk(mode.PublishNAT, mode.ToLoopback, 40, 0.71, 0.02, stats.Worse),
		bulk(mode.PublishProxy, mode.ToLoopback, 20, 0.36, 0.01, stats.Worse))
	at(sample.PinFar, trip(mode.Host, mode.ToLoopback, 50, 1, 0, ""),
		trip(mode.Bridge, mode.ToContainer, 52.6, 1.05, 0.01, stats.Worse),
		trip(mode.PublishProxy, mode.ToLoopback, 86, 1.72, 0.02, stats.Worse))
	at(sample.PinNear, trip(mode.Host, mode.ToLoopback, 14, 1, 0, ""),
		trip(mode.Bridge, mode.ToContainer, 16.1, 1.15, 0.01, stats.Worse),
		trip(mode.PublishNAT, mode.ToLoopback, 17.1, 1.22, 0.02, stats.Worse),
		trip(mode.PublishProxy, mode.ToLoopback, 43, 3.07, 0.02, stats.Worse))
	r.Found = ofCells(r)
	return r
}

func TestSummaryByPin(t *testing.T) {
	for _, columns := range []int{60, 80, 120} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			got := summary(t, sideways(), format.Options{Width: columns})
			if columns == 80 {
				golden(t, "summary-pins-80.txt", got)
			}
			for l := range strings.Lines(got) {
				if w := ansi.StringWidth(strings.TrimSuffix(l, "\n")); w > columns {
					t.Errorf("%d columns: %q", w, l)
				}
			}
			whole(t, Summary(sideways()), got)
		})
	}
}

func TestNoCellToSpareInSummary(t *testing.T) {
	d := Summary(answered())
	for _, c := range documenttest.Unnoticed(d,
		summary(t, answered(), format.Options{Width: format.DefaultWidth})) {
		t.Errorf("nobody would miss %s", c)
	}
}

func TestSummaryOfOddRows(t *testing.T) {
	r := head()
	once := bulk(mode.Bridge, mode.ToContainer, 27.4, 0.86, 0.02, stats.Unclear)
	m := once.Metrics[workload.Throughput]
	x := *m.Ratio
	x.N = 1
	m.Ratio = &x
	once.Metrics[workload.Throughput] = m
	r.Cells = []analysis.Cell{
		bulk(mode.Host, mode.ToLoopback, 31.9, 1, 0, ""), once,
		bulk(mode.PublishNAT, mode.ToLoopback, 400, 12.5, 0.5, stats.Better),
		bulk(mode.PublishProxy, mode.ToLoopback, 0.03, 0.001, 0.0001, stats.Worse),
	}
	r.Found = ofCells(r)
	golden(t, "summary-odd.txt", summary(t, r, format.Options{Width: 79}))
}

func TestNoPlotWithoutRatios(t *testing.T) {
	r := head()
	for _, c := range usual().Cells {
		if m := c.Metrics[c.Primary]; !c.Baseline {
			m.Ratio = nil
			c.Metrics[c.Primary] = m
		}
		r.Cells = append(r.Cells, c)
	}
	r.Answer = &analysis.Answer{}
	for _, s := range Summary(r).Sections {
		for _, b := range s.Blocks {
			if x, ok := b.(document.Table); ok && x.Plot != nil {
				t.Errorf("a plot from %g to %g", x.Plot.From, x.Plot.To)
			}
		}
	}
}

func TestSummaryOfStudies(t *testing.T) {
	climb := climbed()
	climb.Found = ladder.Findings(climb)
	crowds := crowded()
	crowds.Found = scale.Findings(crowds)
	reports := map[string]judge.Report{"ladder": climb, "scale": crowds, "sweep": swept(t)}
	for name, culprits := range map[string][]endpoints.Culprit{"chat": {{Route: "direct",
		Blame: endpoints.Server}, {Route: "vpn", Blame: endpoints.Network}},
		"sql": nil, "chat-one": {{Route: "127.0.0.1:8080", Blame: endpoints.NoOther}},
		"chat-wide": nil} {
		r := routeReports()[name]
		r.Found = endpoints.Findings(r, culprits)
		reports[name] = r
	}
	for name, r := range reports {
		for _, columns := range []int{60, 80, format.DefaultWidth} {
			t.Run(fmt.Sprintf("%s-%d", name, columns), func(t *testing.T) {
				got := summary(t, r, format.Options{Width: columns})
				if columns == 80 && name != "chat-wide" {
					golden(t, "summary-"+name+".txt", got)
				}
				if a := r.Base().Answer; strings.Index(got,
					"\n"+a.Question+"\n") < strings.LastIndex(got, "--details") {
					t.Errorf("%q is not last", a.Question)
				}
				for l := range strings.Lines(got) {
					if w := ansi.StringWidth(strings.TrimSuffix(l, "\n")); w > columns {
						t.Errorf("%d columns: %q", w, l)
					}
				}
				whole(t, Summary(r), got)
			})
		}
		for _, c := range documenttest.Unnoticed(Summary(r),
			summary(t, r, format.Options{Width: format.DefaultWidth})) {
			t.Errorf("%s: nobody would miss %s", name, c)
		}
	}
}
