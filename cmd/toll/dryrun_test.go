package main

import (
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document/documenttest"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

// The document of a plan of epochs and visits is complete: its text abbreviates the cells.
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
	p.Skipped = append(p.Skipped, sample.Skip{Mode: "bridge", From: "host", Reason: "no bridge", Remedy: "modprobe bridge"})
	d := planDocument(p, nil)
	var b strings.Builder
	if err := format.All()[0].Write(&b, d, format.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  an epoch of rr\n        native  ", " slices\n", "from host       crr\n", "\nNot measured here:\n", "no bridge; try modprobe bridge\n"} {
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
