package format

import (
	"io"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

func TestFormatsOfKinds(t *testing.T) {
	some := Format{Name: "some", Kinds: []document.Kind{document.APath},
		write: func(io.Writer, document.Document, Options) error { return nil }}
	report := document.Document{Kind: document.AReport}
	if err := some.Write(io.Discard, document.Document{Kind: document.APath}, Options{}); err != nil {
		t.Error(err)
	}
	if err := some.Write(io.Discard, report, Options{}); err == nil {
		t.Error("a report was written by a format that writes paths only")
	}
	reports, paths := Names(document.AReport), Names(document.APath)
	defer func(was []Format) { formats = was }(formats)
	formats = append(formats[:len(formats):len(formats)], some)
	if got := Names(document.AReport); !slices.Equal(got, reports) {
		t.Errorf("a report has the formats %v", got)
	}
	if got := Names(document.APath); !slices.Equal(got, append(paths, "some")) {
		t.Errorf("a path has the formats %v", got)
	}
}

func TestStyles(t *testing.T) {
	p := newPrinter(Options{Color: true})
	seen := map[string]document.Style{}
	for s := document.Plain; s <= document.Doubtful; s++ {
		text := p.styled(s, "x")
		if other, twice := seen[text]; twice {
			t.Errorf("styles %d and %d look alike: %q", other, s, text)
		}
		seen[text] = s
	}
	if got := p.styled(document.Plain, "x"); got != "x" {
		t.Errorf("plain text is %q", got)
	}
}
