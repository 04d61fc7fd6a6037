package show

import (
	"io"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/page"
)

// htmlFormat writes a document as one HTML file, a report with charts.
var htmlFormat = Format{Name: "html", write: writeHTML}

// writeHTML writes the whole report, even if the document has only its summary, because a page has
// space.
func writeHTML(w io.Writer, d document.Document, _ Options) error {
	if r, ok := d.Value.(judge.Report); ok && d.Kind == document.AReport {
		d = Report(r)
	}
	if r, ok := d.Value.(*published.Report); ok {
		d = PublishedDetails(r)
	}
	return page.Write(w, d)
}
