package show

import (
	"fmt"
	"io"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Format is a form in which documents are written.
type Format struct {
	Name string // as --format takes it
	// Kinds are the documents that it can write; nil: all.
	Kinds []document.Kind
	write func(w io.Writer, d document.Document, o Options) error
}

// Formats are all of them; the first is the default. A format is a file of this package
// and a line here.
func Formats() []Format { return slices.Clone(formats) }

var formats = []Format{tableFormat, jsonFormat, markdownFormat, csvFormat, benchFormat, metricsFormat, htmlFormat}

// FindFormat is the format with that name.
func FindFormat(name string) (f Format, ok bool) {
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return f, false
	}
	return formats[i], true
}

// FormatsOf are the names of the formats that can write a kind of document.
func FormatsOf(k document.Kind) []string {
	var names []string
	for _, f := range formats {
		if f.Writes(k) {
			names = append(names, f.Name)
		}
	}
	return names
}

// Writes reports whether the format can write such a document.
func (f Format) Writes(k document.Kind) bool { return f.Kinds == nil || slices.Contains(f.Kinds, k) }

// Write writes the document.
func (f Format) Write(w io.Writer, d document.Document, o Options) error {
	if !f.Writes(d.Kind) {
		return fmt.Errorf("the format %s does not write %s", f.Name, d.Kind)
	}
	if err := f.write(w, d, o); err != nil {
		return fmt.Errorf("write %s: %w", d.Kind, err)
	}
	return nil
}

// reportIn is the report that a document was made from, for formats of figures.
func reportIn(d document.Document) (judge.Report, error) {
	r, ok := d.Value.(judge.Report)
	if !ok {
		return nil, fmt.Errorf("%T is not a report of a run", d.Value)
	}
	return r, nil
}
