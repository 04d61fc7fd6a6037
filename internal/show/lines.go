package show

import (
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Mark says in which line a table's row stands.
type Mark struct {
	Section, Row int // of the document, and of the section's tables
	Line         int
}

// Lines are the lines of a document as a table has them, and where its tables' rows stand.
func Lines(d document.Document, o Options) ([]string, []Mark) {
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	p := newPrinter(o)
	p.document(d)
	return strings.Split(strings.TrimSuffix(p.b.String(), "\n"), "\n"), p.marks
}
