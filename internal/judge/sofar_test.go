package judge_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
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
