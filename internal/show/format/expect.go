package format

import (
	"fmt"
	"io"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// expectFormat writes the conditions of a document as lines for toll ports --expect.
var expectFormat = Format{Name: "expect", Kinds: []document.Kind{document.PortList},
	write: func(w io.Writer, d document.Document, _ Options) error {
		for _, c := range d.Conditions {
			if _, err := fmt.Fprintln(w, c.Text); err != nil {
				return err
			}
		}
		return nil
	}}
