package chart

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
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
				"of all responses, and the one that took the median time. A relay's bar has both ways."
		}
		one, own := evidenceTrip(&spec, cell.Label(), e, s, e.Parts)
		spec.Trips, rows = append(spec.Trips, one), append(rows, own...)
		if r := e.Response; r != nil && len(r.Last) == len(e.Parts) {
			parts := make([]sample.EvidencePart, len(e.Parts))
			for i, p := range e.Parts {
				parts[i] = sample.EvidencePart{Part: p.Part, Hop: p.Hop, Last: r.Last[i]}
			}
			one, own := evidenceTrip(&spec, cell.Label()+", one response", e, s, parts)
			for _, row := range own {
				row[4], row[5] = "", "" // of one response there are none
			}
			spec.Trips, rows = append(spec.Trips, one), append(rows, own...)
		}
	}
	c.Spec = spec
	c.Table = tableOf(rows, "route", "part", "from", "time", "p50", "p99")
	c.Table.Columns[1].Right = false
	return c, len(spec.Trips) > 0
}

// evidenceTrip returns a waterfall of parts of the evidence, and a row of the table for each.
func evidenceTrip(spec *trips, label string, e *sample.Evidence, s scale,
	parts []sample.EvidencePart) (one trip, rows [][]string) {
	at := 0.0
	one.Label = label
	for _, p := range parts {
		known := slices.IndexFunc(EvidenceParts, func(x struct{ Part, Words string }) bool {
			return x.Part == p.Part
		})
		if known < 0 {
			continue
		}
		words := EvidenceParts[known].Words
		lane := words
		if p.Hop > 0 && p.Hop < len(e.Hops) && e.Hops[p.Hop].Process != "" {
			lane = e.Hops[p.Hop].Process
		}
		one.Bars = append(one.Bars, tripBar{Lane: len(one.Lanes), Part: index(&spec.Parts, words),
			From: fourDigits(at * s.by), To: fourDigits((at + p.Last) * s.by), Text: s.text(p.Last)})
		one.Lanes = append(one.Lanes, lane)
		rows = append(rows, []string{label, lane, s.text(at), s.text(p.Last), s.text(p.P50),
			s.text(p.P99)})
		at += p.Last
	}
	return one, rows
}

// tokenCurves are tokens over time: one panel for each route, on one axis of time.
type tokenCurves struct {
	Axis   string       `json:"axis"`
	Routes []tokenCurve `json:"routes"`
}

type tokenCurve struct {
	Label string       `json:"label"`
	Read  string       `json:"read"` // how much later than the server wrote it the last token was read
	Steps []tokenPoint `json:"steps"`
}

type tokenPoint struct {
	Token int     `json:"token"`
	Left  float64 `json:"left"` // the server
	Read  float64 `json:"read"` // by the client
}

// tokenChart draws when each token of a response of each route left the server and when the client
// read it.
func tokenChart(cells []analysis.Cell) (c document.Chart, ok bool) {
	longest := 0.0
	var drawn []analysis.Cell
	for _, cell := range cells {
		if r := responseOf(cell); r != nil {
			drawn, longest = append(drawn, cell), max(longest, slices.Max(r.Read))
		}
	}
	s, spec := scaleFor("s", longest), tokenCurves{}
	spec.Axis = s.unit + " since the request"
	var rows [][]string
	for _, cell := range drawn {
		r := responseOf(cell)
		end := len(r.Read) - 1
		curve := tokenCurve{Label: cell.Label(),
			Read: "last token " + workload.Briefly(r.Read[end]-r.Written[end]) + " on the way"}
		const most = 10 // rows of the table
		for i, read := range r.Read {
			p := tokenPoint{r.Token(i), fourDigits(r.Written[i] * s.by), fourDigits(read * s.by)}
			curve.Steps = append(curve.Steps, p)
			if i%(1+end/most) == 0 || i == end {
				rows = append(rows, []string{cell.Label(), fmt.Sprint(p.Token),
					s.text(r.Written[i]), s.text(read), workload.Briefly(read - r.Written[i])})
			}
		}
		spec.Routes = append(spec.Routes, curve)
	}
	return document.Chart{Kind: "tokens", Title: "Tokens of one response over time", Spec: spec,
		How: "The response of each route that took the median time. Left curve: when the server had " +
			"written each token; right curve: when the client had read it. The filled area is the " +
			"time on the way: the server's TCP, its device's queue, relays, wire and client.",
		Table: tableOf(rows, "route", "token", "left the server", "read", "on the way")}, len(rows) > 0
}

// responseOf returns the response of a cell whose evidence suffices, or nil.
func responseOf(c analysis.Cell) *sample.EvidenceResponse {
	if !c.Proven() {
		return nil
	}
	r := c.Evidence.Response
	if r == nil || len(r.Read) == 0 || len(r.Read) != len(r.Written) {
		return nil
	}
	return r
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
