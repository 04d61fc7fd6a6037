package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Served shows where the time of the requests goes that a server answered.
func Served(s *sample.Served) document.Document {
	d := document.Document{Kind: document.Requests, JSON: s, Data: servedData(s),
		Page:     func() document.Page { return chart.Served(s) },
		Sections: []document.Section{answerSection(endpoints.ServedAnswer(s))}}
	for _, f := range sentence.Served(s) {
		d.Sections[0].Add(found(f)...)
	}
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
		add(chart.ServedWords(p.Part), p)
	}
	add("request", s.Whole)
	if c := s.Client; c != nil {
		for _, p := range c.Parts {
			add(chart.ServedWords(p.Part), p)
		}
		add("request at the client", c.Whole)
		add(chart.ServedWords(c.Between.Part), c.Between)
	}
	d.Add(section(nil, t))
	slow := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{
		figures("came", "after s"), figures("whole", "µs")}}
	for _, p := range s.Parts {
		if p.Max > 0 {
			slow.Columns = append(slow.Columns, figures(chart.ServedWords(p.Part), "µs"))
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
	d.Add(section(document.Strongly("The slowest requests"), slow))
	if s.Environment.Kernel != "" {
		d.Add(section(nil, faintFacts(strings.Join(machineFacts(s.Environment), document.Facts))))
	}
	return d
}

// servedData has the figures one by one: of all requests, of those whose clients are known, of the
// one that took the median time and of the slowest ones.
func servedData(s *sample.Served) *document.Table {
	t := &document.Table{}
	for _, name := range []string{"requests", "n", "came_s", "part", "statistic", "value_s"} {
		t.Columns = append(t.Columns, texts("", name))
	}
	add := func(of string, n float64, came *float64, part, statistic string, value float64) {
		t.Rows = append(t.Rows, document.Row{Cells: []document.Cell{{Text: of}, datum(&n), datum(came),
			{Text: part}, {Text: statistic}, datum(&value)}})
	}
	part := func(of string, n int, p sample.ServedPart) {
		for _, x := range []struct {
			statistic string
			value     float64
		}{{"mean", p.Mean}, {"p50", p.P50}, {"p99", p.P99}, {"max", p.Max}} {
			add(of, float64(n), nil, cmp.Or(p.Part, "whole"), x.statistic, x.value)
		}
	}
	if s.Requests == 0 {
		return t
	}
	for _, p := range append(slices.Clone(s.Parts), s.Whole) {
		part("all", s.Requests, p)
	}
	if c := s.Client; c != nil {
		for _, p := range append(slices.Clone(c.Parts), c.Whole, c.Between) {
			part("with a client on this machine", c.Requests, p)
		}
	}
	one := func(of string, x sample.Answered) {
		add(of, 1, &x.At, "whole", "value", x.Whole)
		for i, p := range x.Parts {
			add(of, 1, &x.At, s.Parts[i].Part, "value", p)
		}
		if x.Client != nil {
			add(of, 1, &x.At, sample.ServedSent, "value", x.Client[0])
			add(of, 1, &x.At, sample.ServedRead, "value", x.Client[1])
		}
	}
	if s.Median != nil {
		one("median", *s.Median)
	}
	for i, x := range s.Slowest {
		one(fmt.Sprintf("slowest %d", i+1), x)
	}
	return t
}
