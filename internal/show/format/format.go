// Package format writes documents for people and for programs, in each of the formats of All.
package format

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/page"
)

type Options struct {
	Color bool // for terminals
	Width int  // in columns; 0: DefaultWidth
}

// DefaultWidth is the width of text in columns.
const DefaultWidth = 100

// Format is a form in which documents are written.
type Format struct {
	Name string // as in --format
	// Kinds lists the kinds of documents that it can write; nil: all.
	Kinds []document.Kind
	Whole bool // documents should have all details
	write func(w io.Writer, d document.Document, o Options) error
}

// All returns all formats, the default first.
func All() []Format { return slices.Clone(formats) }

var formats = []Format{tableFormat, jsonFormat, markdownFormat, csvFormat, benchFormat,
	metricsFormat, junitFormat, expectFormat, htmlFormat}

func Find(name string) (f Format, ok bool) {
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return f, false
	}
	return formats[i], true
}

func Names(k document.Kind) []string {
	var names []string
	for _, f := range formats {
		if f.Writes(k) {
			names = append(names, f.Name)
		}
	}
	return names
}

// Writes reports whether the format can write documents of the given kind.
func (f Format) Writes(k document.Kind) bool {
	return f.Kinds == nil || slices.Contains(f.Kinds, k)
}

// Write writes a document. It returns an error if the format cannot write the document's kind.
func (f Format) Write(w io.Writer, d document.Document, o Options) error {
	if !f.Writes(d.Kind) {
		return fmt.Errorf("the format %s does not write %s", f.Name, d.Kind)
	}
	if err := f.write(w, d, o); err != nil {
		return fmt.Errorf("write %s: %w", d.Kind, err)
	}
	return nil
}

var htmlFormat = Format{Name: "html", Whole: true,
	write: func(w io.Writer, d document.Document, _ Options) error {
		return page.Write(w, d)
	}}

var jsonFormat = Format{Name: "json", write: writeJSON}

func writeJSON(w io.Writer, d document.Document, _ Options) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(d.JSON)
}

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
