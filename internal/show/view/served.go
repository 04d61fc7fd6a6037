package view

import (
	"cmp"

	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Served shows where the time of the requests goes that a server answered.
func Served(s *sample.Served) document.Document {
	d := document.Document{Kind: document.Requests, JSON: s,
		Sections: []document.Section{answerSection(endpoints.ServedAnswer(s))}}
	if s.Requests == 0 {
		return d
	}
	time := func(x float64) document.Cell { return numberCell(units.Digits(x*micro), x, "s") }
	t := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{
		texts("", "part"), figures("mean", "µs"), figures("p50", "µs"), figures("p99", "µs"),
		figures("largest", "µs")}}
	add := func(head string, p sample.ServedPart) {
		if p.Max > 0 {
			t.Rows = append(t.Rows, document.Row{Cells: []document.Cell{{Text: head}, time(p.Mean),
				time(p.P50), time(p.P99), time(p.Max)}})
		}
	}
	for _, p := range s.Parts {
		add(servedHead(p.Part), p)
	}
	add("request", s.Whole)
	if c := s.Client; c != nil {
		for _, p := range c.Parts {
			add(servedHead(p.Part), p)
		}
		add("request at the client", c.Whole)
		add(servedHead(c.Between.Part), c.Between)
	}
	d.Sections = append(d.Sections, document.Section{Blocks: []document.Block{t}})
	slow := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{
		figures("came", "after s"), figures("whole", "µs")}}
	for _, p := range s.Parts {
		if p.Max > 0 {
			slow.Columns = append(slow.Columns, figures(servedHead(p.Part), "µs"))
		}
	}
	for _, x := range s.Slowest {
		row := document.Row{Cells: []document.Cell{
			numberCell(units.Digits(x.At), x.At, "s"), time(x.Whole)}}
		for i, part := range x.Parts {
			if s.Parts[i].Max > 0 {
				row.Cells = append(row.Cells, time(part))
			}
		}
		slow.Rows = append(slow.Rows, row)
	}
	d.Sections = append(d.Sections, document.Section{Title: document.Strongly("The slowest requests"),
		Blocks: []document.Block{slow}})
	return d
}

// servedHeads has the heads of parts that have other ones than their names.
var servedHeads = map[string]string{sample.EvidenceTCP: "its TCP", sample.EvidenceQueue: "its queue",
	sample.ServedRequest: "receiving", sample.ServedReply: "sending",
	sample.ServedCPU: "waiting for a CPU", sample.ServedSent: "to the server",
	sample.ServedHere: "at the server", sample.ServedRead: "back until read",
	sample.ServedBetween: "until the next one"}

func servedHead(part string) string { return cmp.Or(servedHeads[part], part) }
