package format

import (
	"io"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/page"
)

// htmlFormat writes a document as one HTML file, a report with charts.
var htmlFormat = Format{Name: "html", Whole: true, write: func(w io.Writer, d document.Document, _ Options) error {
	return page.Write(w, d)
}}
