package view

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

// The answer begins with the warning that the machine was busy, so the warnings lack it.
func TestBusyIsSaidOnce(t *testing.T) {
	r := routesTo(someChat, chatRoute("a", "127.0.0.1:1", 0, ""))
	r.Warnings = []analysis.Warning{{Code: analysis.Busy, Text: "the machine was too busy. Wait"},
		{Code: "ways", Text: "the ways lead to different servers"}}
	r.Found = slices.Insert(endpoints.Findings(r, nil), 0, analysis.Finding{Code: analysis.Busy})
	text := summary(t, r, format.Options{})
	if n := strings.Count(strings.ToLower(text), "too busy"); n != 1 ||
		!strings.Contains(text, "different servers") {
		t.Errorf("%d times:\n%s", n, text)
	}
	if text := table(t, r, format.Options{}); !strings.Contains(text, "the machine was too busy. Wait") {
		t.Errorf("the details lack it:\n%s", text)
	}
}
