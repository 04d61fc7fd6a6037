package chart

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestEvidenceChart(t *testing.T) {
	e := &sample.Evidence{Responses: 10, ByOrder: 10, Writes: true,
		Hops: []sample.EvidenceHop{{Process: "postgres", Port: 5432},
			{Process: "docker-proxy", Port: 80}},
		Parts: []sample.EvidencePart{{Part: sample.EvidenceRequest, Last: 10e-6},
			{Part: sample.EvidenceServer, Last: 90e-6},
			{Part: sample.EvidenceRelay, Hop: 1, Last: 120e-6},
			{Part: sample.EvidenceWire, Last: 5e-6}}}
	few := *e
	few.ByOrder = 5
	cells := []analysis.Cell{{Cell: sample.Cell{Mode: "published"}, Evidence: e},
		{Cell: sample.Cell{Mode: "direct"}, Evidence: &few},
		{Cell: sample.Cell{Mode: "other"}}}
	c, ok := evidenceChart(cells)
	if !ok {
		t.Fatal("no chart")
	}
	spec := c.Spec.(trips)
	if spec.Axis != "µs" || len(spec.Trips) != 1 || spec.Trips[0].Label != "published" ||
		!slices.Equal(spec.Parts, []string{"request", "server", "relays", "wire"}) ||
		!slices.Equal(spec.Trips[0].Lanes, []string{"request", "server", "docker-proxy", "wire"}) {
		t.Fatalf("%+v", spec)
	}
	for i, want := range []tripBar{{0, 0, 0, 10, "10.0 µs"}, {1, 1, 10, 100, "90.0 µs"},
		{2, 2, 100, 220, "120 µs"}, {3, 3, 220, 225, "5.00 µs"}} {
		if got := spec.Trips[0].Bars[i]; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if _, ok := evidenceChart(cells[1:]); ok {
		t.Error("a chart without evidence")
	}
}

func tokenCharts(t *testing.T) (all charts) {
	t.Helper()
	e := judgetest.Evidence([7]float64{1, 99, 0, 0, 20, 1, 1}, [7]float64{1, 199, 5, 0, 40, 1, 1},
		[7]float64{})
	e.Response = &sample.EvidenceResponse{Tokens: 21, Written: []float64{0.1, 0.15, 0.2},
		Read: []float64{0.122, 0.19, 0.248},
		Last: []float64{1e-3, 0.199, 5e-3, 0, 0.041, 1e-3, 1e-3}}
	steady := *e
	steady.Response = &sample.EvidenceResponse{Tokens: 1, Written: []float64{0.1},
		Read: []float64{0.101}, Last: []float64{0.101}} // not as many parts: no waterfall
	cells := []analysis.Cell{{Cell: sample.Cell{Mode: "nginx"}, Evidence: e},
		{Cell: sample.Cell{Mode: "direct"}, Evidence: &steady}}
	for _, draw := range []func([]analysis.Cell) (document.Chart, bool){evidenceChart, tokenChart} {
		c, ok := draw(cells)
		if !ok {
			t.Fatal("no chart")
		}
		all = append(all, c)
	}
	return all
}

func TestTokenCharts(t *testing.T) {
	all := tokenCharts(t)
	var labels []string
	for _, x := range all[0].Spec.(trips).Trips {
		labels = append(labels, x.Label)
	}
	if !slices.Equal(labels, []string{"nginx", "nginx, one response", "direct"}) {
		t.Errorf("waterfalls of %q", labels)
	}
	one := all[0].Spec.(trips).Trips[1]
	if got, want := one.Bars[4], (tripBar{4, 4, 205, 246, "41.0 ms"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	spec := all[1].Spec.(tokenCurves)
	if spec.Axis != "ms since the request" || len(spec.Routes) != 2 ||
		spec.Routes[0].Read != "last token 48.0 ms on the way" ||
		!slices.Equal(spec.Routes[0].Steps,
			[]tokenPoint{{1, 100, 122}, {11, 150, 190}, {21, 200, 248}}) {
		t.Errorf("%+v", spec)
	}
	for name, r := range map[string]*sample.EvidenceResponse{"none": nil, "empty": {Tokens: 3},
		"of different lengths": {Tokens: 2, Written: []float64{1}, Read: []float64{1, 2}}} {
		e := judgetest.Evidence([7]float64{}, [7]float64{}, [7]float64{})
		e.Response = r
		if _, ok := tokenChart([]analysis.Cell{{Evidence: e}}); ok {
			t.Errorf("%s: a chart", name)
		}
	}
}
