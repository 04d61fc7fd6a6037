package view

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestFactsNameModes(t *testing.T) {
	cell := func(m mode.Name, from mode.Placement, rules string) analysis.Cell {
		return analysis.Cell{Cell: sample.Cell{Mode: m, From: from},
			Facts: map[string]string{"rules": rules}}
	}
	r := &analysis.Report{}
	r.Cells = []analysis.Cell{cell("native", "host", ""),
		cell("bridge", "host", "Docker's"), cell("publish-proxy", "host", "Docker's")}
	if got := factsOf(r, "rules"); !slices.Equal(got, []string{"Docker's"}) {
		t.Errorf("one value: %q", got)
	}
	r.Cells = append(r.Cells, cell("publish-proxy", "remote", "none"),
		cell("routed", "host", "none"))
	want := []string{"Docker's, with bridge and publish-proxy from the machine itself",
		"none, with publish-proxy from another machine and routed"}
	if got := factsOf(r, "rules"); !slices.Equal(got, want) {
		t.Errorf("several values: %q, want %q", got, want)
	}
}
