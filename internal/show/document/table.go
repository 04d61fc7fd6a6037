package document

import (
	"slices"
	"strings"
)

// Table has rows of cells under heads. Formats without a limit on width ignore the fields after
// Rows.
type Table struct {
	Columns []Column
	Rows    []Row

	Level   int      // of indentation
	Layouts []Layout // tried in order; if none fits, the last is used; nil: Wide
	Fit     string   // tables of one name share a layout; "": its own
	Split   Split
	At      int    // the column before which SplitInTwo splits
	Plot    *Plot  // nil: none
	Instead string // printed if no layout fits; "": the last layout is used
}

// Layout is a combination of means to save width. The zero value saves nothing.
type Layout struct {
	Short bool // use short texts and heads
	Below bool // print columns with Below under their rows, on one line
	Terse bool // leave out columns that are quiet in all rows
	Tight bool // one space between columns, not two
	Lean  bool // leave out spare columns
	Bare  bool // leave out the plot
}

// Wide returns the layout that saves nothing.
func Wide() []Layout { return []Layout{{}} }

// Split is how a table that is still too wide is divided into several, each with the first column.
type Split int

const (
	Whole      Split = iota
	SplitInTwo       // before Table.At
	SplitEven        // into the fewest equal parts that fit
	SplitFull        // with as many columns as fit
)

type Column struct {
	Head      [2]string // two lines
	ShortHead string    // for the second line; "": none
	Span      int       // columns under the first line; 0: one
	Right     bool      // aligned to the right
	Below     bool      // may be printed below its rows
	Quiet     string    // text without information; "": always shown
	Marked    bool      // cells may have marks
	Spare     bool      // also shown elsewhere
	Once      bool      // a text need not be repeated in the next row
	Width     int       // fixed: longer texts move what follows; 0: of the widest text
	Gap       int       // space before it; 0: the table's
	Cut       Cut       // of texts if no layout fits
	Least     int       // columns that a cut leaves
}

type Cut int

const (
	NoCut Cut = iota
	CutMiddle
	CutEnd
)

// Title returns both lines of the head. A word that a hyphen splits over them is joined.
func (c Column) Title() string {
	if start, broken := strings.CutSuffix(c.Head[0], "-"); broken {
		return start + c.Head[1]
	}
	return strings.TrimSpace(c.Head[0] + " " + c.Head[1])
}

type Row struct {
	Above Text // nil: nothing
	Cells []Cell
	Note  string // printed below; "": nothing
	Style Style
}

type Cell struct {
	Text   string
	Short  string  // for short layouts; "": Text
	Under  string  // printed below its row, without a head; "": Text
	Drawn  string  // on pages: the level that their charts have; "": Text
	Mark   string  // one column wide, after the text; "": none
	Number *Number // nil: not a number
	Style  Style
}

type Number struct {
	Value     float64
	Low, High *float64 // interval; nil: none
	Unit      string   // "": none, or not known
	Verdict   string   // "": none
	// Varies means that Low and High are a range without a typical value.
	Varies bool
}

// Head returns column i, with the first line of a head that spans it.
func (t Table) Head(i int) Column {
	c := t.Columns[i]
	for k := i - 1; c.Head[0] == "" && k >= 0; k-- {
		if over := t.Columns[k]; over.Head[0] != "" {
			if k+over.Span > i {
				c.Head[0] = over.Head[0]
			}
			break
		}
	}
	return c
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

// Unit returns the base unit of a column's numbers, or "" if there are none or their units differ.
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

// WithoutEmpty returns the table without the columns that are empty in all rows. It keeps the first
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
