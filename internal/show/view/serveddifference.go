package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// ServedDifference shows what differs between the requests to a server at two times.
func ServedDifference(r *difference.Served) document.Document {
	d := document.Document{Kind: document.ADifference, JSON: r}
	head := section(nil, document.Paragraph{Text: document.Strongly(changedParts(r))})
	for _, side := range []struct {
		what string
		difference.ServedSide
	}{{"old", r.Old}, {"new", r.New}} {
		facts := []string{side.what + ": " + side.Name, side.Server.Place(),
			fmt.Sprintf("%s, %.0f a second", units.Plural(side.Requests, "request"), side.Rate)}
		if !side.Started.IsZero() {
			facts = append(facts, side.Started.UTC().Format(time.DateTime)+" UTC")
		}
		head.Add(plainFacts(strings.Join(facts, document.Facts)))
	}
	d.Add(head, otherSettings(r.Settings, nil))
	if len(r.Parts) > 0 {
		d.Add(section(nil, servedChanges(r)))
	}
	d.Add(section(nil, faint("change: of the "+
		"median, with a 95 % interval that takes each tenth of the requests as one value; what is called "+
		"longer or shorter is so at 99 %; "+doubtMark+": too few requests for an interval, or a file of an older "+
		"toll. It says what differs between the two times, not why: other clients, other requests or a "+
		"busier machine change all parts.")))
	return d
}

// servedName returns the words for a part of the requests' time.
func servedName(p difference.ServedPart) string {
	switch {
	case p.Part != "":
		return chart.ServedWords(p.Part)
	case p.Client:
		return "request at the client"
	}
	return "request"
}

// changedParts says which medians certainly changed.
func changedParts(r *difference.Served) string {
	var said []string
	for _, v := range []stats.Verdict{stats.Costs, stats.Gains} {
		var items []string
		for _, p := range r.Parts {
			if p.Change.Verdict == v && p.Part != sample.ServedHere {
				items = append(items, servedName(p)+" "+p.Change.In(p.Change.Value()))
			}
		}
		if word := "Longer"; len(items) > 0 {
			if v == stats.Gains {
				word = "Shorter"
			}
			said = append(said, word+": "+strings.Join(items, "; ")+".")
		}
	}
	return cmp.Or(strings.Join(said, " "), "Nothing is certain to have changed.")
}

func servedChanges(r *difference.Served) document.Table {
	t := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{texts("", "part"),
		figures("p50, µs", "old"), figures("", "new"), figures("", "change"),
		figures("p99, µs", "old"), figures("", "new")}}
	time := func(p *sample.ServedPart, of func(*sample.ServedPart) float64) document.Cell {
		if p == nil {
			return nothing
		}
		return numberCell(units.Digits(of(p)*micro), of(p), "s")
	}
	p50 := func(p *sample.ServedPart) float64 { return p.P50 }
	p99 := func(p *sample.ServedPart) float64 { return p.P99 }
	for _, p := range r.Parts {
		change := nothing
		if p.Old != nil && p.New != nil {
			text := p.Change.Value()
			if p.Change.N == 0 {
				text = fmt.Sprintf("%+.3g %s", p.Change.Median*micro, doubtMark)
			}
			change = priceCell(text, p.Change)
			change.Style = styleOf(p.Change.Verdict)
		}
		row := document.Row{Cells: []document.Cell{{Text: servedName(p)}, time(p.Old, p50),
			time(p.New, p50), change, time(p.Old, p99), time(p.New, p99)}}
		if slices.Contains([]string{"", sample.ServedHere}, p.Part) {
			row.Style = document.Strong
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
