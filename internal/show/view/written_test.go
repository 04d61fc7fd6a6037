package view

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/comparison"
	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/judge/sweep"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/documenttest"
)

// written returns the document in a format. It also lays out tables at several widths, and checks
// their answer against the JSON.
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

func TestContradictions(t *testing.T) {
	for name, change := range map[string]func(*mesh.Mesh, *analysis.Finding){
		"fault":     func(m *mesh.Mesh, _ *analysis.Finding) { m.Faults = nil },
		"no fault":  func(_ *mesh.Mesh, f *analysis.Finding) { f.Code = mesh.NoFault },
		"two nodes": func(m *mesh.Mesh, f *analysis.Finding) { f.Rows = []int{0, len(m.Faults) - 1} },
	} {
		r := meshReports()["mesh"]
		i := slices.IndexFunc(r.Found, func(f analysis.Finding) bool { return f.Code == mesh.AtFault })
		d := Report(r)
		change(r.Mesh, &r.Found[i])
		if len(documenttest.Contradictions(d)) == 0 {
			t.Errorf("%s: nothing is found in %+v", name, r.Found[i])
		}
	}
	for code, other := range map[string]string{comparison.Keep: comparison.Avoid,
		comparison.Avoid: comparison.Open} {
		r := answered()
		i := slices.IndexFunc(r.Found, func(f analysis.Finding) bool { return f.Code == code })
		r.Found[i].Code = other
		if len(documenttest.Contradictions(Summary(r))) == 0 {
			t.Errorf("%s for %s: nothing is found", other, code)
		}
	}
	for code, change := range map[string]func(*trace.Trace){
		trace.NotDivided:    func(t *trace.Trace) { t.Refused = "" },
		trace.Added:         func(t *trace.Trace) { t.Refused = trace.NoTrips },
		trace.FramesInHooks: func(t *trace.Trace) { t.Findings[0].Values[trace.Whole] *= 1.1 },
	} {
		r := traced()
		i := max(0, slices.IndexFunc(r.Found, func(f analysis.Finding) bool { return f.Code == code }))
		change(&r.Traces[r.Found[i].Rows[0]])
		if len(documenttest.Contradictions(Report(r))) == 0 {
			t.Errorf("%s of another trace: nothing is found", code)
		}
	}
	some, err := published.Compare(published.Studies(), []published.Input{measuredBulk(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range some.Studies {
		for i, f := range s.Findings {
			if f.Verdict == published.NotMeasured {
				s.Findings[i].Verdict = published.Holds
			}
		}
	}
	if len(documenttest.Contradictions(Published(some))) == 0 {
		t.Error("a finding that holds without a ratio: nothing is found")
	}
	curves := swept(t)
	curves.Curves[0].Knee.Shape = sweep.None
	if len(documenttest.Contradictions(Report(curves))) == 0 {
		t.Error("none for another knee: nothing is found")
	}
}
