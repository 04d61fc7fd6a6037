package chart

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestEvidenceChart(t *testing.T) {
	e := &sample.Evidence{Responses: 10, ByOrder: 10, Writes: true,
		Hops: []sample.EvidenceHop{{Process: "postgres", Port: 5432}, {Process: "docker-proxy", Port: 80}},
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
