package analysis_test

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestChangedCellsFail(t *testing.T) {
	cells := append(judgetest.Trio(mode.Bridge, "bulk"), judgetest.HostCell(mode.Routed, "bulk"))
	r := judgetest.New(t, cells...)
	for round := range 6 {
		for i := range cells {
			r.Visit(round, i, 10)
		}
	}
	mtu := sample.Difference{Where: "machine A", What: "MTU of veth-server", Was: "1500", Is: "600"}
	r.File.Changes = []sample.Change{{Difference: mtu, Cells: []int{2}, Round: 2, Right: 1,
		Seen: 9}}
	for range 4 {
		r.File.Changes = append(r.File.Changes,
			sample.Change{Difference: sample.Difference{
				Where: "machine A", What: "x", Was: "a", Is: "b"}, Cells: []int{2}})
	}
	got := analysis.Judge(r.File)
	if len(got.Cells) != 2 || len(got.Failed) != 1 {
		t.Fatalf("%d cells, failed %+v", len(got.Cells), got.Failed)
	}
	f := got.Failed[0]
	if f.Mode != "bridge" || f.Reason != "its path was changed while it was measured" ||
		!strings.HasPrefix(
			f.Evidence, "MTU of veth-server on machine A was 1500 and is 600 since round 3; ") ||
		!strings.HasSuffix(f.Evidence, "; and 2 more") {
		t.Errorf("%+v", f)
	}

	r.File.Changes = []sample.Change{{Difference: mtu, Cells: []int{0, 1}}}
	got = analysis.Judge(r.File)
	if len(got.Failed) != 1 || got.Failed[0].Mode != "host" || len(got.Cells) != 2 {
		t.Fatalf("%d cells, failed %+v", len(got.Cells), got.Failed)
	}
	for _, c := range got.Cells {
		if c.Metrics[workload.Throughput].Ratio != nil {
			t.Errorf("%s has a ratio to what was changed", c.Mode)
		}
	}
	said := false
	for _, w := range got.Warnings {
		said = said || w.Code == "no-baseline"
	}
	if !said {
		t.Errorf("warnings %+v", got.Warnings)
	}
}
