package view

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/testing/documenttest"
)

func whole(t *testing.T, d document.Document, text string) {
	t.Helper()
	for _, l := range documenttest.Missing(d, text) {
		t.Errorf("not in the document: %s", l)
	}
	for _, c := range documenttest.Unnumbered(d) {
		t.Errorf("a figure without its number: %s", c)
	}
	for _, c := range documenttest.Unpercented(d) {
		t.Errorf("a ratio in another notation: %s", c)
	}
}

// Without any one cell, a golden table would lack a word.
func TestNoCellToSpare(t *testing.T) {
	study, err := published.Compare(published.Studies()[:1], nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]document.Document{
		"usual.txt":  Report(usual()),
		"ladder.txt": Report(climbed()),
		"mesh.txt":   Report(meshReports()["mesh"]),
		"chat.txt":   Report(routeReports()["chat"]), "published.txt": Published(study),
		"predict.txt": Prediction(prediction(predict.Workload{Queries: 20, Bytes: 4096, QPS: 500})),
		"ports.txt":   Ports(pricedPorts(), true),
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			if missing := documenttest.Missing(d, string(text)); len(missing) > 0 {
				t.Fatalf("not in the document: %q", missing)
			}
			for _, c := range documenttest.Unnoticed(d, string(text)) {
				t.Errorf("nobody would miss %s", c)
			}
		})
	}
}

func TestFigures(t *testing.T) {
	r := usual()
	table := Report(r).Sections[1].Blocks[0].(document.Table)
	seen := map[string]bool{}
	for i, col := range table.Columns {
		seen[col.Title()] = true
		switch col.Title() {
		case "Gbit/s":
			if m, n := r.Cells[2].Metrics[workload.Throughput], table.Rows[2].Cells[i].Number; table.Unit(i) != "bit/s" || n.Value != m.Median || *n.Low != m.Low {
				t.Errorf("%q %+v, want %+v", table.Unit(i), n, m)
			}
		case "ratio to host":
			if n := table.Rows[2].Cells[i].Number; table.Unit(i) != "ratio" || n.Value != 0.86 ||
				*n.Low != 0.84 || *n.High != 0.87 || n.Verdict != "worse" {
				t.Errorf("%q %+v", table.Unit(i), n)
			}
		case "mode":
			if table.Unit(i) != "" {
				t.Errorf("a mode's unit is %q", table.Unit(i))
			}
		}
	}
	if !seen["Gbit/s"] || !seen["ratio to host"] || !seen["mode"] {
		t.Errorf("the columns are %v", seen)
	}
}
