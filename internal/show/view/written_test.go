package view

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/document/documenttest"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

// A table is also laid out at several widths, and its answer is checked against its JSON.
func written(t *testing.T, name string, d document.Document, o format.Options) string {
	t.Helper()
	f, ok := format.Find(name)
	if !ok {
		t.Fatalf("no format %q", name)
	}
	write := func(o format.Options) string {
		var b strings.Builder
		if err := f.Write(&b, d, o); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if name == "table" {
		for _, what := range documenttest.Contradictions(d) {
			t.Errorf("a contradiction: %s", what)
		}
		for _, columns := range documenttest.Widths {
			text := write(format.Options{Width: columns})
			for _, what := range documenttest.Misfits(d, text, columns) {
				t.Error(what)
			}
		}
	}
	return write(o)
}
