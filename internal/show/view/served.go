package view

import (
	"slices"

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
	add := func(p sample.ServedPart, head string) {
		if p.Max > 0 {
			t.Rows = append(t.Rows, document.Row{Cells: []document.Cell{{Text: head}, time(p.Mean),
				time(p.P50), time(p.P99), time(p.Max)}})
		}
	}
	for _, p := range append(slices.Clone(s.Parts), s.Whole) {
		add(p, servedHead(p.Part))
	}
	if c := s.Client; c != nil {
		for _, p := range append(slices.Clone(c.Parts), c.Whole, c.Between) {
			add(p, clientHead(p.Part))
		}
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

func clientHead(part string) string {
	switch part {
	case sample.ServedSent:
		return "to the server"
	case sample.ServedHere:
		return "at the server"
	case sample.ServedRead:
		return "back until read"
	case sample.ServedBetween:
		return "until the next one"
	}
	return "request at the client"
}

func servedHead(part string) string {
	switch part {
	case sample.EvidenceTCP:
		return "its TCP"
	case sample.EvidenceQueue:
		return "its queue"
	case "":
		return "request"
	case sample.ServedRequest:
		return "receiving"
	case sample.ServedReply:
		return "sending"
	case sample.ServedCPU:
		return "waiting for a CPU"
	}
	return part
}
