package format

import (
	"io"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/page"
)

var htmlFormat = Format{Name: "html", Whole: true,
	write: func(w io.Writer, d document.Document, _ Options) error {
		return page.Write(w, d)
	}}
