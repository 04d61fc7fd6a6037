package view

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/chart"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// evidenceTable returns a table that divides the time to the first and to the last token of a
// response, or byte of a reply, into its parts. ok is false without evidence.
func evidenceTable(cells []analysis.Cell) (t document.Table, ok bool) {
	seen := slices.DeleteFunc(slices.Clone(cells), func(c analysis.Cell) bool {
		return !c.Proven()
	})
	if len(seen) == 0 {
		return t, false
	}
	name, token, unit := texts("", "route"), texts("ms to", "token"), milli
	if seen[0].Evidence.ByOrder > 0 {
		token, unit = texts("µs to", "byte"), micro
	}
	name.Cut, name.Least, name.Once = document.CutMiddle, leastPhrase, true
	t = document.Table{Level: 1, Layouts: onlyGaps,
		Columns: []document.Column{name, token, figures("mean", "whole")}}
	var parts []string
	for _, p := range chart.EvidenceParts {
		if anyHas(seen, p.Part) {
			parts = append(parts, p.Part)
			t.Columns = append(t.Columns, figures("", p.Words))
		}
	}
	type instant struct {
		token string
		of    func(sample.EvidencePart) float64
	}
	instants := []instant{{"first", endpoints.First}, {"last", endpoints.Last}}
	if !slices.ContainsFunc(seen, hasBoth) {
		instants = instants[1:]
	}
	for _, c := range seen {
		for _, x := range instants {
			t.Rows = append(t.Rows, document.Row{Cells: evidenceCells(c, x.token, parts, unit, x.of)})
		}
	}
	return t, true
}

// hasBoth reports whether the first and the last token, or byte, came at different times.
func hasBoth(c analysis.Cell) bool {
	return slices.ContainsFunc(c.Evidence.Parts, func(p sample.EvidencePart) bool {
		return p.First != p.Last
	})
}

func evidenceCells(c analysis.Cell, token string, parts []string, unit float64,
	of func(sample.EvidencePart) float64) []document.Cell {
	sums := map[string]float64{}
	whole := 0.0
	for _, p := range c.Evidence.Parts {
		sums[p.Part] += of(p)
		whole += of(p)
	}
	shown := func(x float64) document.Cell { return numberCell(units.Digits(x*unit), x, "s") }
	out := []document.Cell{{Text: c.Label()}, {Text: token}, shown(whole)}
	for _, p := range parts {
		x, ok := sums[p]
		if !ok || p == sample.EvidenceTCP && !c.Evidence.Writes {
			out = append(out, nothing)
			continue
		}
		out = append(out, shown(x))
	}
	return out
}

// anyHas reports whether the part of any of the routes is known.
func anyHas(cells []analysis.Cell, part string) bool {
	has := slices.ContainsFunc(cells, func(c analysis.Cell) bool {
		return slices.ContainsFunc(c.Evidence.Parts, func(p sample.EvidencePart) bool {
			return p.Part == part
		})
	})
	return has && (part != sample.EvidenceTCP || slices.ContainsFunc(cells,
		func(c analysis.Cell) bool { return c.Evidence.Writes }))
}
