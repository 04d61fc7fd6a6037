package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/documenttest"
)

// planned returns the document of a dry run and its table, which has to show all of it.
func planned(t *testing.T, p sample.Plan) (d document.Document, text string) {
	t.Helper()
	d = Plan(p, nil)
	var b strings.Builder
	if err := format.All()[0].Write(&b, d, format.Options{}); err != nil {
		t.Fatal(err)
	}
	if missing := documenttest.Missing(d, b.String()); len(missing) > 0 {
		t.Errorf("not in the document: %q", missing)
	}
	return d, b.String()
}

func TestPlan(t *testing.T) {
	p, err := plan.Make(plan.Request{From: []mode.Placement{mode.FromHost}, Baseline: mode.Host,
		On: []string{sample.Lab}, Budget: 10, Precision: 0.02, Same: 0.03, Epoch: 2,
		Loads: []sample.Load{
			{Kind: "rr", Warmup: 0.01, Window: 0.05, Slice: 0.004},
			{Kind: "crr", Warmup: 0.05, Window: 0.25}}})
	if err != nil {
		t.Fatal(err)
	}
	p.Skipped = append(p.Skipped, sample.Skip{
		Mode: "bridge", From: "host", Reason: "no bridge", Remedy: "modprobe bridge"})
	d, text := planned(t, p)
	if len(d.Sections) != 3 {
		t.Errorf("%d sections, want the outline, the first round, and what is skipped",
			len(d.Sections))
	}
	for _, spare := range documenttest.Unnoticed(d, text) {
		// The words of this row are all in its control's, too.
		if !strings.HasPrefix(spare, "host, ") {
			t.Errorf("nobody would miss %s", spare)
		}
	}
}

func TestPlanOfMesh(t *testing.T) {
	for _, tt := range []struct {
		nodes, rounds, phases, pairs int
	}{{3, 3, 3, 1}, {100, shownRounds, shownPhases, shownPairs + 1}} {
		r := plan.MeshRequest{On: "swarm", Budget: 60, Precision: 0.02, Seed: 3, AtOnce: 10,
			Loads: []sample.Load{{Kind: "rr", Warmup: 0.05, Window: 0.25},
				{Kind: "bulk", Warmup: 0.1, Window: 0.25}}}
		for i := range tt.nodes {
			r.Nodes = append(r.Nodes, sample.Node{Name: fmt.Sprintf("n%d", i+1)})
		}
		p, err := plan.Mesh(r)
		if err != nil {
			t.Fatal(err)
		}
		d, _ := planned(t, p)
		rounds := 0
		for _, b := range d.Sections[1].Blocks {
			table, is := b.(document.Table)
			if !is {
				continue
			}
			rounds++
			pairs := strings.Count(table.Rows[0].Cells[1].Text, ", ") + 1
			if len(table.Rows) > tt.phases || pairs != tt.pairs {
				t.Errorf("%d nodes: %d phases of %d pairs, want %d of %d", tt.nodes,
					len(table.Rows), pairs,
					tt.phases, tt.pairs)
			}
		}
		if rounds != tt.rounds {
			t.Errorf("%d nodes: %d rounds, want %d", tt.nodes, rounds, tt.rounds)
		}
	}
}
