package format

import (
	"encoding/json"
	"io"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

var jsonFormat = Format{Name: "json", write: writeJSON}

func writeJSON(w io.Writer, d document.Document, _ Options) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(d.JSON)
}
