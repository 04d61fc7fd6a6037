package format

import (
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Mark is the line at which a table's row is printed.
type Mark struct {
	Section, Row int // index in the document, and in its tables
	Line         int
}

// Lines returns the lines of a document as the table format prints them, with the positions of its
// tables' rows.
func Lines(d document.Document, o Options) ([]string, []Mark) {
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	p := newPrinter(o)
	p.document(d)
	return strings.Split(strings.TrimSuffix(p.b.String(), "\n"), "\n"), p.marks
}
