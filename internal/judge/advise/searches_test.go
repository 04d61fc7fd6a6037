package advise

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestPairOf(t *testing.T) {
	p, err := plan.Advice(plan.Request{Baseline: mode.Bridge,
		From: []mode.Placement{mode.FromHost, mode.FromRemote}, On: []string{sample.Lab},
		Loads: []sample.Load{{Kind: "bulk", Window: 0.05, Slice: 0.004},
			{Kind: "crr", Window: 0.25}},
		Budget: 60, Precision: 0.02, Same: 0.03, Epoch: 1, Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	gro, both := sample.Variant{Mode: "bridge", Tune: "gro=on"},
		sample.Variant{Mode: "bridge", Tune: "rmem=16M+gro=on"}
	want := "host bridge bulk, host bridge bulk control, host bridge+gro=on bulk, host " +
		"bridge+rmem=16M+gro=on bulk, " +
		"host bridge crr, host bridge crr control, host bridge+gro=on crr, host " +
		"bridge+rmem=16M+gro=on crr, " +
		"remote publish-nat bulk, remote publish-nat bulk control, remote publish-nat+gro=on " +
		"bulk, remote publish-nat+rmem=16M+gro=on bulk, " +
		"remote publish-nat crr, remote publish-nat crr control, remote publish-nat+gro=on crr, " +
		"remote publish-nat+rmem=16M+gro=on crr"
	if got := judgetest.Named(pairOf(p, gro, both)); got != want {
		t.Errorf("cells %s", got)
	}
	first := pairOf(p, sample.Variant{Mode: "bridge"}, gro)
	got := judgetest.Named(first[:3])
	if got != "host bridge bulk, host bridge bulk control, host bridge+gro=on bulk" {
		t.Errorf("the first step has %s", got)
	}
	p.Cells = append(p.Cells, first...)
	slices.Reverse(p.Cells)
	if again := pairOf(p, gro, both); len(again) != 16 {
		t.Errorf("a later step has %d cells", len(again))
	}
}
