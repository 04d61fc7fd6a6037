// Package report writes a judged run for people and for programs. It does no
// arithmetic beyond scaling base units for print.
package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
)

// Options say how a report is written.
type Options struct {
	Color bool // for terminals
	Width int  // columns of the table; 0 is DefaultWidth
}

// DefaultWidth is the table's width in columns.
const DefaultWidth = 100

// Writer writes a report in one format.
type Writer func(w io.Writer, r *analysis.Report, o Options) error

// Formats are the formats by the names that `--format` takes.
var Formats = map[string]Writer{"table": Table, "json": JSON}

// JSON writes the report as one JSON document.
func JSON(w io.Writer, r *analysis.Report, _ Options) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
