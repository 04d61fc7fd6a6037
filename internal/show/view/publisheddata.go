package view

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/numbers"
)

// publishedData returns a table with a row for each ratio of two published figures, each figure
// that is in no ratio, and each claim.
func publishedData(p *published.Report) *document.Table {
	t := &document.Table{}
	for _, name := range []string{"study", "year", "table", "mode", "placement", "load", "shape",
		"metric", "unit", "value", "value_to",
		"against", "against_shape", "published_ratio", "measured_ratio", "low", "high", "n",
		"epochs", "file", "verdict", "notes",
		"here", "here_low", "here_high", "here_n", "here_unit", "idle", "proxy"} {
		t.Columns = append(t.Columns, texts("", name))
	}
	add := func(cells ...[]document.Cell) {
		t.Rows = append(t.Rows, document.Row{Cells: slices.Concat(cells...)})
	}
	for _, s := range p.Studies {
		for _, l := range s.Rows {
			of := append(document.Texts(s.Name, s.Year, l.Table, l.Mode, l.Placement, l.Load,
				l.Shape, l.Metric, l.Unit),
				datum(&l.Value), datum(end(l.To)))
			if len(l.Ratios) == 0 {
				add(of, make([]document.Cell, 10), document.Texts(l.WhyNot), hereData(l.Here))
			}
			for _, x := range l.Ratios {
				add(of, document.Texts(s.Rows[x.To].Mode, s.Rows[x.To].Shape),
					[]document.Cell{datum(&x.Published)},
					ratioData(x.Measured), document.Texts(x.File, string(x.Verdict), x.Why),
					hereData(l.Here))
			}
		}
		for _, x := range s.Claims {
			add(claimData(s, x)...)
		}
	}
	return t
}

func datum(x *float64) document.Cell {
	if x == nil {
		return document.Cell{}
	}
	return document.Cell{Number: &document.Number{Value: *x}}
}

// end returns nil for 0, which means that there is no published range.
func end(x float64) *float64 {
	if x == 0 {
		return nil
	}
	return &x
}

func number(n int) *float64 { return end(float64(n)) }

func ratioData(m *analysis.Ratio) []document.Cell {
	if m == nil {
		return make([]document.Cell, 5)
	}
	low, high := numbers.Bounds(m.Low, m.High, m.N)
	return []document.Cell{datum(&m.Median), datum(low), datum(high), datum(number(m.N)),
		datum(number(m.Epochs))}
}

// hereData returns this machine's figures in base units.
func hereData(h *published.Here) []document.Cell {
	if h == nil {
		return make([]document.Cell, 7)
	}
	low, high := numbers.Bounds(h.Low, h.High, h.N)
	out := []document.Cell{datum(&h.Median), datum(low), datum(high), datum(number(h.N)),
		{Text: h.Unit}, {}, {}}
	for i, v := range []*published.Value{h.Idle, h.Proxy} {
		if v != nil {
			out[5+i] = datum(&v.Median)
		}
	}
	return out
}

// claimData returns the row of a claim without figures. Its notes have the claim's words and
// direction, its value is the bound.
func claimData(s published.Result, x published.ClaimResult) [][]document.Cell {
	to := ""
	if x.To != nil {
		to = analysis.Label(*x.To)
	}
	notes := strings.TrimSuffix(x.Text+": "+string(x.Want)+": "+x.Why, ": ")
	return [][]document.Cell{
		document.Texts(s.Name, s.Year, "", analysis.Label(x.Of), string(x.Of.From), x.Of.Load, "",
			x.Metric, x.Unit),
		{datum(end(x.Bound)), {}, {Text: to}, {}, {}}, ratioData(x.Measured),
		document.Texts(x.File, string(x.Verdict), notes),
		{datum(x.Extreme), {}, {}, {}, {Text: x.Unit}, {}, {}},
	}
}
