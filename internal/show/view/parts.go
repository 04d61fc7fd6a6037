package view

import (
	"cmp"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Part is a table of a judged run, whose rows can be sorted and inspected.
type Part struct {
	Section document.Section // its tables have one row for each of Rows
	Rows    []PartRow
}

type PartRow struct {
	Name    string
	Cells   []analysis.Cell // one per CPU placement that the table shows; none: no result
	Value   float64         // of the cell's primary metric, in base units
	Higher  bool            // higher is better
	Price   float64         // higher is more expensive; -Inf for the baseline
	Verdict string          // as in the table; "": none
	// Trace has the row as a part, or explains it; nil: nothing was traced. Segments names the part
	// whose segments the row lists; "": the segments of the whole trip.
	Trace    *trace.Trace
	Segments string
}

// Parts returns the tables of a run's summary, or nil for a mesh and for a run without an answer.
func Parts(r judge.Report) []Part {
	base := told(r)
	if base.Answer == nil {
		return nil
	}
	return viewOf(base).parts(r)
}

func cellParts(r judge.Report) []Part {
	base := r.Base()
	var out []Part
	for _, g := range tableGroups(base) {
		p := Part{Section: briefly(base, g)}
		last := p.Section.Blocks[len(p.Section.Blocks)-1] // a table of tokens comes before it
		t, _ := last.(document.Table)
		for n, c := range g {
			row := rowOf(base, c)
			row.take(t, n)
			p.Rows = append(p.Rows, row)
		}
		out = append(out, p)
	}
	return out
}

func rowOf(r *analysis.Report, c analysis.Cell) PartRow {
	m, cells := c.Metrics[c.Primary], []analysis.Cell{c}
	for _, p := range r.Plan.Pins {
		if other, ok := r.WithPin(c, p.Name); ok && p.Name != c.Pin && sideBySide(r) {
			cells = append(cells, other)
		}
	}
	return PartRow{Name: c.Name(), Cells: cells, Value: m.Median, Higher: m.Higher, Price: c.Toll()}
}

// label returns the row's name without points and sizes, so that sorting by mode keeps their order.
func (r *PartRow) label() string {
	if len(r.Cells) == 0 {
		return r.Name
	}
	return r.Cells[0].Label()
}

// take reads sort keys from the table, so that rows are sorted by what is shown.
func (r *PartRow) take(t document.Table, n int) {
	cells := t.Rows[n].Cells
	if r.Verdict = cells[len(cells)-1].Text; len(r.Cells) > 1 { // each placement has its own
		r.Verdict = verdictCell(r.Cells[0]).Text
	}
	unit := r.Cells[0].Metrics[r.Cells[0].Primary].Unit
	figure := func(c document.Cell) bool {
		return c.Number != nil && c.Number.Unit == unit && c.Number.Verdict == ""
	}
	if at := slices.IndexFunc(cells, figure); at >= 0 {
		r.Value = cells[at].Number.Value
	}
	if t.Plot == nil || r.Cells[0].Baseline || cells[t.Plot.Column].Number == nil {
		return
	}
	r.Price = cells[t.Plot.Column].Number.Value
	if r.Higher {
		r.Price = -r.Price
	}
}

func ladderParts(report *ladder.Report) []Part {
	r := report.Base()
	var out []Part
	named := map[int]bool{}
	for _, l := range r.Plan.Loads {
		for i, side := range sides(report.Steps) {
			if !measured(r, side, l) {
				continue
			}
			p := Part{Section: briefStep(r, side, l, !named[i])}
			named[i] = true // the tables of other loads have the same steps
			for _, s := range side {
				p.Rows = append(p.Rows, stepRow(r, s, l.Kind))
			}
			out = append(out, p)
		}
	}
	return out
}

func stepRow(r *analysis.Report, s ladder.Step, load string) PartRow {
	row := PartRow{Name: s.Label, Price: math.Inf(-1)}
	c, ok := cellOf(r, s, load)
	if !ok {
		return row
	}
	if load == workload.RR {
		row.Trace = s.Trace
	}
	m := c.Metrics[c.Primary]
	row.Cells, row.Value, row.Higher = []analysis.Cell{c}, m.Median, m.Higher
	if price, ok := s.Prices[ladder.PriceName(load, c.Primary)]; ok {
		row.Price, row.Verdict = price.Median, price.Word()
		if price.Unit == analysis.RatioUnit && row.Higher {
			row.Price = -price.Median
		}
	}
	return row
}

type Sorting string

// AsReported keeps the report's order; the others put the best row first.
const (
	AsReported Sorting = "report"
	ByMode     Sorting = "mode"
	ByValue    Sorting = "value"
	ByVerdict  Sorting = "verdict"
	ByPrice    Sorting = "price"
)

func Sortings() []Sorting { return []Sorting{AsReported, ByMode, ByValue, ByVerdict, ByPrice} }

var verdictOrder = []string{string(stats.Better), string(stats.Gains), "baseline", "", "-",
	string(analysis.Within), string(stats.Same), string(stats.Nothing),
	string(stats.Unclear), analysis.Varying, string(stats.Costs), string(stats.Worse)}

func (s Sorting) compare(a, b PartRow) int {
	switch s {
	case ByMode:
		return cmp.Compare(a.label(), b.label())
	case ByValue:
		if a.Higher {
			a, b = b, a
		}
		return cmp.Compare(a.Value, b.Value)
	case ByVerdict:
		return cmp.Or(cmp.Compare(slices.Index(verdictOrder, a.Verdict),
			slices.Index(verdictOrder, b.Verdict)), cmp.Compare(a.Price, b.Price))
	case ByPrice:
		return cmp.Compare(a.Price, b.Price)
	}
	return 0
}

// Sorted returns p with its rows sorted. It does not change p. reversed reverses the order.
func (p Part) Sorted(by Sorting, reversed bool) Part {
	order := make([]int, len(p.Rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return by.compare(p.Rows[i], p.Rows[k]) })
	if reversed {
		slices.Reverse(order)
	}
	out := Part{Section: p.Section}
	out.Section.Blocks = slices.Clone(p.Section.Blocks)
	for _, i := range order {
		out.Rows = append(out.Rows, p.Rows[i])
	}
	for n, b := range out.Section.Blocks {
		t, is := b.(document.Table)
		if !is || len(t.Rows) != len(order) {
			continue
		}
		t.Rows = ordered(t.Rows, order)
		out.Section.Blocks[n] = t
	}
	return out
}

// ordered returns the rows in the given order. Text above a row applies to later rows, too, so
// ordered keeps it with them.
func ordered(rows []document.Row, order []int) []document.Row {
	above := make([]document.Text, len(rows))
	for i, r := range rows {
		above[i] = r.Above
		if i > 0 && len(r.Above) == 0 {
			above[i] = above[i-1]
		}
	}
	out := make([]document.Row, len(order))
	for at, i := range order {
		out[at] = rows[i]
		if out[at].Above = above[i]; at > 0 && above[i].String() == above[order[at-1]].String() {
			out[at].Above = nil
		}
	}
	return out
}

// Beside returns what surrounds a run's tables: before them the answer; behind them findings
// without an answer, what has no result, and warnings.
func Beside(r judge.Report) (before, behind []document.Section) {
	base := told(r)
	if base.Answer != nil {
		before = append(before, answerSection(base.Answer))
	}
	if len(base.Findings) > 0 && base.Answer == nil {
		behind = append(behind, section(nil, document.List{Topic: document.Findings,
			Items: base.Findings, Level: 1}))
	}
	return before, append(append(behind, absent(base)...), warnings(base)...)
}

// Doubts returns the run's warnings, each once.
func Doubts(r judge.Report) []string {
	for _, s := range warnings(r.Base()) {
		return s.Blocks[0].(document.List).Items
	}
	return nil
}

// RunFacts returns how long a run took, how it ended and how noisy it was.
func RunFacts(r judge.Report) string { return runText(r.Base()) }
