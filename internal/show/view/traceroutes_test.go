package view

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// TestTracedRoutes shows requests over a relayed route and a direct one, and over one route alone.
func TestTracedRoutes(t *testing.T) {
	nagle := func(x *sample.Trace) {
		x.Waits = []sample.EvidenceWait{{Cause: sample.WaitNagle, Tokens: 500, Sum: 20}}
	}
	golden(t, "trace-routes.txt",
		written(t, "table", Summary(judge.Judge(judgetest.Routes(30, nagle))),
			format.Options{Width: 80}))
	golden(t, "trace-routes-details.txt",
		written(t, "table", Report(judge.Judge(judgetest.Routes(30, nil))),
			format.Options{Width: 100}))
	golden(t, "trace-route.txt",
		written(t, "table", Summary(judge.Judge(judgetest.Routes(0, nil))),
			format.Options{Width: 80}))
	golden(t, "trace-routes-parts.txt", written(t, "table", Summary(judge.Judge(judgetest.Routes(30,
		judgetest.Divided(4e-6, 4e-3)))), format.Options{Width: 80}))
	golden(t, "trace-routes-network.txt", written(t, "table", Report(judge.Judge(judgetest.Routes(30,
		judgetest.OnNetwork(2e-6)))), format.Options{Width: 100}))
	var titles []string
	r := judge.Judge(judgetest.Routes(30, nil))
	for _, g := range chart.Trace(r.(*trace.Report)) {
		for _, c := range g.Charts {
			titles = append(titles, c.Title)
		}
	}
	for _, want := range []string{"A round trip, hop by hop", "The slowest request over relayed",
		"What relayed adds to direct, part by part", "Client, server and relays by epoch, µs"} {
		if !slices.Contains(titles, want) {
			t.Errorf("no chart %q in %q", want, titles)
		}
	}
}

// TestCostOfTracing says what tracing adds only where that is known to be more than nothing: on a
// busy machine, traced requests may be the faster ones.
func TestCostOfTracing(t *testing.T) {
	for want, cost := range map[string]analysis.Price{
		"tracing adds +6 ±2 µs to each (12 events)": µs(6, 2, stats.Costs),
		"what tracing adds to each cannot be told (-469 ±500 µs, 12 events)": µs(-469, 500,
			stats.Unclear),
	} {
		if got := traceFacts(trace.Trace{Cost: cost, Events: 12}); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
