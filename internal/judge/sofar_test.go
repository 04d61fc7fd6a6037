package judge_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestSoFar(t *testing.T) {
	cells := slices.Concat(judgetest.Trio(mode.Bridge, "bulk"), judgetest.Trio(mode.Bridge, "rr"))
	run := judgetest.New(t, cells...)
	for round := range 6 { // the first load's cells come last in the plan
		for i, x := range []float64{20, 20, 24} {
			run.Visit(round, 3+i, x+0.1*float64(round%2))
		}
	}
	f := run.File
	f.Truncated, f.End = true, sample.End{Reason: sample.EndedCutShort}
	f.Changes = []sample.Change{{Cells: []int{0}}, {Cells: []int{0, 1}}}
	before := append([]sample.Cell{}, f.Header.Plan.Cells...)
	r := judge.SoFar(f).Base()
	if len(r.Failed) > 0 || len(r.Cells) != 2 {
		t.Errorf("%d failed, %d cells", len(r.Failed), len(r.Cells))
	}
	if slices.ContainsFunc(r.Warnings, func(w analysis.Warning) bool {
		return w.Code == "truncated"
	}) {
		t.Errorf("warnings %+v", r.Warnings)
	}
	if !reflect.DeepEqual(before, f.Header.Plan.Cells) || f.Visits[0].Cell != 3 || !f.Truncated {
		t.Error("the file was changed")
	}
	whole := judge.Judge(f).Base()
	if len(whole.Failed) != 2 || !reflect.DeepEqual(whole.Cells[1].Metrics, r.Cells[1].Metrics) {
		t.Errorf("judged whole, %d failed; %+v", len(whole.Failed), whole.Cells[1].Metrics)
	}
	f.Truncated = false
	if got := judge.SoFar(f).Base(); !reflect.DeepEqual(got, judge.Judge(f).Base()) {
		t.Error("of a run that has ended, it is another report")
	}
}

// A search of two modes whose second one has just begun: of its cells only the baseline and its
// control have been visited, and of the first mode's a lever has not.
func TestSoFarOfSeveralModes(t *testing.T) {
	cells := judgetest.Trio(mode.Native, workload.Bulk) // of which host is the baseline
	gro, next := cells[0], judgetest.HostCell(mode.PublishNAT, workload.Bulk)
	gro.Tune = "gro=on"
	nextGRO := next
	nextGRO.Tune = "gro=on"
	run := judgetest.New(t, cells[0], cells[1], gro, cells[2])
	p := &run.File.Header.Plan
	p.Study, p.Also = sample.StudyAdvise, []string{"publish-nat"}
	p.Levers = []sample.Lever{{Name: "gro", Variant: sample.Variant{Mode: "host", Tune: "gro=on"}},
		{Name: "native", Variant: sample.Variant{Mode: "native"}}}
	run.File.Header.Take(sample.Step{Round: 6, Active: []int{4, 5, 6},
		Cells: []sample.Cell{nextGRO, next, judgetest.Control(next)},
		Begins: &sample.Search{Baseline: "publish-nat", Levers: []sample.Lever{
			{Name: "gro", Variant: sample.Variant{Mode: "publish-nat", Tune: "gro=on"}}}}})
	for round := range 6 {
		for _, cell := range []int{0, 1, 3} {
			run.Visit(round, cell, 20)
		}
	}
	run.Visit(6, 5, 30)
	f := run.File
	f.Truncated, f.End = true, sample.End{Reason: sample.EndedCutShort}
	f.Changes = []sample.Change{{Cells: []int{4, 5}, Round: 6}}
	r, ok := judge.SoFar(f).(*advise.Report)
	if !ok || len(r.Advice) != 2 || r.Advice[0].Mode != "host" || r.Advice[1].Mode != "publish-nat" {
		t.Fatalf("%+v", r)
	}
	if levers := r.Advice[0].Levers; len(levers) != 2 || len(levers[0].Alone) != 1 {
		t.Errorf("levers %+v", levers)
	}
	if len(r.Failed) != 1 || r.Failed[0].Mode != mode.PublishNAT || r.Failed[0].Tune != "" {
		t.Errorf("a change of the second search failed %+v", r.Failed)
	}
	if f.Header.Plan.Steps[0].Active[2] != 6 || len(f.Header.Plan.Steps[0].Cells) != 3 {
		t.Error("the file was changed")
	}
	f.Truncated = false
	judge.Judge(f) // with the change in the second search only
}
