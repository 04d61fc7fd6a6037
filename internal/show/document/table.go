package document

import (
	"slices"
	"strings"
)

// Table holds rows of cells under the heads of columns. The fields after Rows say how to make it
// narrower if necessary; a format without a limit on width ignores them.
type Table struct {
	Columns []Column
	Rows    []Row

	Level   int      // of indentation
	Layouts []Layout // tried in this order; if none fits, the last is used; nil: Wide
	Fit     string   // tables with the same name share a layout; "": it has its own
	Split   Split
	At      int    // the column before which SplitInTwo splits
	Plot    *Plot  // drawn among the columns; nil: nothing is
	Instead string // printed if no layout fits; "": the last layout is used
}

// Layout says how a table saves width. The zero value saves nothing.
type Layout struct {
	Short bool // use short texts and heads where a cell or column has them
	Below bool // print the columns that allow it below their rows
	Terse bool // leave out columns that are quiet in all rows
	Tight bool // one space between columns, not two
	Lean  bool // leave out spare columns
	Bare  bool // leave out the plot
}

// Wide returns the layout that saves nothing.
func Wide() []Layout { return []Layout{{}} }

// Split says how a table that is still too wide becomes several tables. Each has the first column.
type Split int

// The ways to split.
const (
	Whole      Split = iota
	SplitInTwo       // before Table.At
	SplitEven        // into the smallest number of equal parts that fit
	SplitFull        // into parts with as many columns as fit
)

// Column is one of a table's columns.
type Column struct {
	Head      [2]string // two lines
	ShortHead string    // replaces the second line; "": there is none
	Span      int       // the number of columns that the first line covers; 0: one
	Right     bool      // its texts are aligned to the right
	Below     bool      // it may be printed below its rows
	Quiet     string    // its text in rows where it says nothing; "": always shown
	Marked    bool      // its cells may have marks
	Spare     bool      // its content is also shown elsewhere
	Once      bool      // a text need not be repeated in the row below
	Width     int       // fixed, longer texts move what follows; 0: of the widest text
	Gap       int       // the space before it; 0: the table's
	Cut       Cut       // where its texts are cut if no layout fits
	Least     int       // the columns that a cut leaves
}

// Cut says where a text that is too long is cut.
type Cut int

// The places of a cut.
const (
	NoCut Cut = iota
	CutMiddle
	CutEnd
)

// Title returns the column's head in one line.
func (c Column) Title() string { return strings.TrimSpace(c.Head[0] + " " + c.Head[1]) }

// Row is one of a table's rows.
type Row struct {
	Above Text // printed above it; nil: nothing
	Cells []Cell
	Note  string // printed below it; "": nothing
	Style Style
}

// Cell is what a row has in a column.
type Cell struct {
	Text   string
	Short  string  // for short layouts; "": Text
	Mark   string  // one column wide, after the text; "": none
	Number *Number // nil: it is not a number
	Style  Style
}

// Number is a figure in base units.
type Number struct {
	Value     float64
	Low, High *float64 // its interval; nil: none
	Unit      string   // "": none, or not known
	Verdict   string   // "": none
}

// Texts returns cells without numbers.
func Texts(texts ...string) []Cell {
	out := make([]Cell, len(texts))
	for i, t := range texts {
		out[i].Text = t
	}
	return out
}

// Headed reports whether any column has a head.
func (t Table) Headed() bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Title() != "" })
}

// Unit returns the base unit of a column's numbers, or "" if there are no numbers or if their units
// differ.
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

// WithoutEmpty returns the table without columns that are empty in all rows. It keeps the first
// column.
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
