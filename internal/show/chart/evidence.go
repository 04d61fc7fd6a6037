package chart

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// EvidenceParts are the parts of the time of a token or an exchange in their order, with short
// words for each.
var EvidenceParts = []struct{ Part, Words string }{
	{sample.EvidenceRequest, "request"},
	{sample.EvidenceServer, "server"},
	{sample.EvidenceTCP, "its TCP"},
	{sample.EvidenceQueue, "its queue"},
	{sample.EvidenceRelay, "relays"},
	{sample.EvidenceWire, "wire"},
	{sample.EvidenceClient, "client"},
}

// evidenceChart draws how the time of each route's mean response, or exchange, passes.
func evidenceChart(cells []analysis.Cell) (c document.Chart, ok bool) {
	s := scaleFor("s", largest(wholes(cells)...))
	spec := trips{Axis: s.unit, Pale: []int{}}
	c = document.Chart{Kind: "trip", Title: "Where the time goes, part by part",
		How: "Each bar is a part of the time until the client had all of a reply, by the packets " +
			"that toll captured at the server, at each relay and at the client: the mean of all " +
			"replies. A relay's bar has both ways."}
	var rows [][]string
	for _, cell := range cells {
		e := cell.Evidence
		if !cell.Proven() {
			continue
		}
		if e.ByOrder == 0 {
			c.Title = "Where the time to the last token goes, part by part"
			c.How = "Each bar is a part of the time until the client had the last token, by the " +
				"packets that toll captured at the server, at each relay and at the client: the mean " +
				"of all responses. A relay's bar has both ways."
		}
		one, at := trip{Label: cell.Label()}, 0.0
		for _, p := range e.Parts {
			i := slices.IndexFunc(EvidenceParts, func(x struct{ Part, Words string }) bool {
				return x.Part == p.Part
			})
			if i < 0 {
				continue
			}
			lane := EvidenceParts[i].Words
			if p.Hop > 0 && p.Hop < len(e.Hops) && e.Hops[p.Hop].Process != "" {
				lane = e.Hops[p.Hop].Process
			}
			one.Bars = append(one.Bars, tripBar{Lane: len(one.Lanes),
				Part: index(&spec.Parts, EvidenceParts[i].Words),
				From: fourDigits(at * s.by), To: fourDigits((at + p.Last) * s.by),
				Text: s.text(p.Last)})
			one.Lanes = append(one.Lanes, lane)
			rows = append(rows, []string{cell.Label(), lane, s.text(at), s.text(p.Last),
				s.text(p.P50), s.text(p.P99)})
			at += p.Last
		}
		spec.Trips = append(spec.Trips, one)
	}
	c.Spec = spec
	c.Table = tableOf(rows, "route", "part", "from", "mean", "p50", "p99")
	c.Table.Columns[1].Right = false
	return c, len(spec.Trips) > 0
}

// wholes returns the mean times of the routes whose evidence suffices, in s.
func wholes(cells []analysis.Cell) (out []float64) {
	for _, c := range cells {
		if !c.Proven() {
			continue
		}
		sum := 0.0
		for _, p := range c.Evidence.Parts {
			sum += p.Last
		}
		out = append(out, sum)
	}
	return out
}
