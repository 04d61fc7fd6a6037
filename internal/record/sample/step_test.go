package sample

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// stepped returns a file with two rounds: the first has the plan's two cells, the second one of
// them and a new one.
func stepped(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	plain := Cell{Mode: "bridge", From: "host", To: "container", Load: "bulk", On: Lab}
	gro, both := plain, plain
	gro.Tune, both.Tune = "gro=on", "rmem=16M+gro=on"
	p := Plan{Study: StudyAdvise, Baseline: "bridge", Budget: 1, Precision: 0.02,
		Loads: []Load{{Kind: "bulk", Window: 1}}, Cells: []Cell{plain, gro},
		Levers: []Lever{{"gro", Variant{"bridge", "gro=on"}}}}
	good := func(round, cell int) Visit {
		v := Visit{Turn: Turn{Round: round, Cell: cell}}
		v.Witness.OK = true
		return v
	}
	for _, err := range []error{
		w.Header(Header{Plan: p, Paths: []Path{{Mode: "bridge"}}}), w.Visit(good(0, 0)),
		w.Visit(good(0, 1)),
		w.Step(Step{Round: 1, Lever: "rmem", Before: Variant{"bridge", "gro=on"},
			After:   Variant{"bridge", "rmem=16M+gro=on"},
			Active:  []int{0, 2},
			Cells:   []Cell{both},
			Paths:   []Path{{Mode: "bridge", Tune: both.Tune}},
			Skipped: []Skip{{Mode: "bridge", Tune: "rps=on", Reason: "only root may"}}}),
		w.Visit(good(1, 0)), w.Visit(good(1, 2)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestSteps(t *testing.T) {
	text := stepped(t)
	f, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	p := f.Header.Plan
	if len(p.Cells) != 3 || p.Cells[2].Tune != "rmem=16M+gro=on" || len(f.Header.Paths) != 2 ||
		len(p.Skipped) != 1 || len(p.Levers) != 1 {
		t.Errorf("header %+v", f.Header)
	}
	if len(p.Steps) != 1 || p.Steps[0].Round != 1 ||
		!reflect.DeepEqual(p.Steps[0].Active, []int{0, 2}) || p.Steps[0].Lever != "rmem" {
		t.Errorf("steps %+v", p.Steps)
	}
	if len(f.Visits) != 4 || f.End.Rounds != 2 {
		t.Errorf("%d visits in %d complete rounds", len(f.Visits), f.End.Rounds)
	}
}

func TestBadSteps(t *testing.T) {
	text := strings.TrimSuffix(stepped(t), "\n")
	for step, why := range map[string]string{
		`{"step":{"round":0,"active":[]}}`: "line 7: impossible first " +
			"round 0 of a step",
		`{"step":{"round":99999999,"active":[]}}`: "line 7: impossible first " +
			"round 99999999 of a step",
		`{"step":{"round":2,"active":[3]}}`: "line 7: cell 3 is not in " +
			"the plan, which has 3 cells",
		`{"step":{"round":2,"active":[-1]}}`: "line 7: cell -1 is not in " +
			"the plan, which has 3 cells",
		`{"step":{"round":2,"cells":[{"shape":{"servers":-1}}]}}`: "line 7: impossible shape -1×0×0",
		`{"step":{"round":2,"active":[` + strings.Repeat("0,", 1e4) +
			`0]}}`: "line 7: more than 10000 cells",
		`{"visit":{"round":1,"cell":3}}`: "line 7: cell 3 is not in the plan, which has 3 cells",
	} {
		if _, err := Read(strings.NewReader(text + "\n" + step + "\n")); err == nil ||
			err.Error() != why {
			t.Errorf("%.60s: error %v, want %q", step, err, why)
		}
	}
	if _, err := Read(strings.NewReader(text + strings.Repeat("\n"+`{"step":{"round":2}}`, maxSteps))); err == nil || err.Error() !=
		"line 1006: more than 1000 steps" {
		t.Errorf("a thousand steps: %v", err)
	}
	// A header's own steps would have no cells.
	f, err := Read(strings.NewReader(strings.Replace(
		text, `"levers":`, `"steps":[{"round":7,"active":[9]}],"levers":`, 1)))
	if err != nil || len(f.Header.Plan.Steps) != 1 {
		t.Errorf("%v, %+v", err, f)
	}
}
