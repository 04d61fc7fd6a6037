package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/documenttest"
)

func TestPlanDocument(t *testing.T) {
	f := slicing(4*time.Millisecond, 0, "rr", "crr")
	f.budget, f.from, f.to, f.baseline = 10*time.Second, []string{"host"}, nil, "host"
	r, err := f.toRequest(nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Make(r)
	if err != nil {
		t.Fatal(err)
	}
	p.Skipped = append(p.Skipped, sample.Skip{
		Mode: "bridge", From: "host", Reason: "no bridge", Remedy: "modprobe bridge"})
	d := planDocument(p, nil)
	var b strings.Builder
	if err := format.All()[0].Write(&b, d, format.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  an epoch of rr\n        native  ", " slices\n",
		"from host       crr\n", "\nNot measured here:\n", "no bridge; hint: modprobe bridge\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if missing := documenttest.Missing(d, b.String()); len(missing) > 0 {
		t.Errorf("not in the document: %q", missing)
	}
	for _, spare := range documenttest.Unnoticed(d, b.String()) {
		// The words of this row are all in its control's, too.
		if !strings.HasPrefix(spare, "host, ") {
			t.Errorf("nobody would miss %s", spare)
		}
	}
}

func TestPrintMesh(t *testing.T) {
	request := func(nodes int) plan.MeshRequest {
		r := plan.MeshRequest{On: "swarm", Budget: 60, Precision: 0.02, Seed: 3,
			Loads: []sample.Load{{Kind: "rr", Warmup: 0.05, Window: 0.25},
				{Kind: "bulk", Warmup: 0.1, Window: 0.25}}}
		for i := range nodes {
			r.Nodes = append(r.Nodes, sample.Node{Name: fmt.Sprintf("n%d", i+1)})
		}
		return r
	}
	show := func(r plan.MeshRequest) string {
		t.Helper()
		p, err := plan.Mesh(r)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		d := planDocument(p, nil)
		if err := format.All()[0].Write(&b, d, format.Options{}); err != nil {
			t.Fatal(err)
		}
		if missing := documenttest.Missing(d, b.String()); len(missing) > 0 {
			t.Errorf("not in the document: %q", missing)
		}
		return b.String()
	}
	small := show(request(3))
	for _, want := range []string{
		"3 nodes, 3 pairs, 3 rounds per sweep, about 1.8 s per round and 5 s per sweep; sweeps until",
		"(at least 5 sweeps) or 60 s have passed (at least one sweep);", "seed 3\n",
		"rr: warm-up 0.05 s, window 0.25 s\n", "  round 3\n    "} {
		if !strings.Contains(small, want) {
			t.Errorf("no %q in\n%s", want, small)
		}
	}
	if n := strings.Count(small, "→ n"); n != 9 {
		t.Errorf("%d visits are shown, want 9:\n%s", n, small)
	}
	large := request(1000)
	large.Sweeps, large.AtOnce = 2, 10
	got := show(large)
	for _, want := range []string{"1000 nodes, 499500 pairs, 999 rounds per sweep",
		"seed 3\nat most 10 pairs at once\n", ", 4 more\n", "    and 144 more phases\n",
		"  and 994 more rounds\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%.500s", want, got)
		}
	}
}
