package document

import (
	"slices"
	"strings"
)

// Table is rows of cells under the heads of columns. What follows Rows says how it is
// made narrower where it must be; a format that has as much space as it likes needs none of it.
type Table struct {
	Columns []Column
	Rows    []Row

	Level   int      // of indentation
	Layouts []Layout // that are tried in this order, the last is taken if none fits; nil: Wide
	Fit     string   // tables with the same name have one layout; "": this has its own
	Split   Split
	At      int    // the column before which SplitInTwo splits
	Plot    *Plot  // drawn among the columns; nil: nothing is
	Instead string // what is said where no layout fits; "": the last layout is taken
}

// Layout is how a table saves width.
type Layout struct {
	Short bool // short texts and heads, where there are any
	Below bool // columns that may be are below their rows
	Terse bool // without the columns that are quiet in all rows
	Tight bool // one space between columns, not two
	Lean  bool // without spare columns
	Bare  bool // without a plot
}

// Wide is the layout that saves nothing.
func Wide() []Layout { return []Layout{{}} }

// Split is how a table that is still too wide becomes several, which all have the first column.
type Split int

// The ways to split.
const (
	Whole      Split = iota
	SplitInTwo       // before Table.At
	SplitEven        // into as many equal parts as it takes
	SplitFull        // as many columns as fit, and again
)

// Column is one of a table's columns.
type Column struct {
	Head      [2]string // two lines
	ShortHead string    // of the second line; "": it has none
	Span      int       // how many columns the first line stands above; 0: one
	Right     bool      // its texts are aligned to the right
	Below     bool      // it may be below its rows
	Quiet     string    // its text in rows of which it says nothing; "": it is never left out
	Marked    bool      // its cells may have marks
	Spare     bool      // what it says is said elsewhere, too
	Once      bool      // a text need not be shown again in the row below
	Width     int       // fixed, a longer text moves what follows; 0: of its widest text
	Gap       int       // before it; 0: the table's
	Cut       Cut       // where its texts are cut if no layout fits
	Least     int       // columns that a cut leaves
}

// Cut says where a text that is too long is cut.
type Cut int

// The places of a cut.
const (
	NoCut Cut = iota
	CutMiddle
	CutEnd
)

// Title is the column's head in one line.
func (c Column) Title() string { return strings.TrimSpace(c.Head[0] + " " + c.Head[1]) }

// Row is one of a table's rows.
type Row struct {
	Above Text // stands above it; nil: nothing
	Cells []Cell
	Note  string // stands below it; "": nothing
	Style Style
}

// Cell is what a row has in a column.
type Cell struct {
	Text   string
	Short  string  // where the layout is short; "": Text
	Mark   string  // of one column, behind the text; "": none
	Number *Number // nil: it is no number
	Style  Style
}

// Number is a figure in base units.
type Number struct {
	Value     float64
	Low, High *float64 // its interval; nil: none
	Unit      string   // "": none, or it is not known
	Verdict   string   // "": none
}

// Texts are cells without numbers.
func Texts(texts ...string) []Cell {
	out := make([]Cell, len(texts))
	for i, t := range texts {
		out[i].Text = t
	}
	return out
}

// Headed reports whether the table has heads.
func (t Table) Headed() bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Title() != "" })
}

// Unit is the base unit of a column's numbers; "" if they have none, or several.
func (t Table) Unit(column int) string {
	unit, seen := "", false
	for _, r := range t.Rows {
		n := r.Cells[column].Number
		switch {
		case n == nil:
		case seen && n.Unit != unit:
			return ""
		default:
			unit, seen = n.Unit, true
		}
	}
	return unit
}

// WithoutEmpty returns the table without the columns in which no row has a text. The first stays.
func (t Table) WithoutEmpty() Table {
	out := t
	out.Rows = slices.Clone(t.Rows)
	for i := len(t.Columns) - 1; i > 0; i-- {
		if slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Cells[i].Text != "" }) {
			continue
		}
		out.Columns = slices.Delete(slices.Clone(out.Columns), i, i+1)
		for n, r := range out.Rows {
			out.Rows[n].Cells = slices.Delete(slices.Clone(r.Cells), i, i+1)
		}
	}
	return out
}
