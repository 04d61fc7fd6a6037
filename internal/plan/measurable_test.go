package plan

import (
	"errors"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestMeasurable(t *testing.T) {
	cell := func(m mode.Name, on string) sample.Cell { return sample.Cell{Mode: m, On: on} }
	gone := func(m mode.Name, on string) sample.Skip {
		return sample.Skip{Mode: m, On: on, Reason: "no module", Remedy: "load it"}
	}
	for _, tt := range []struct {
		name    string
		cells   []sample.Cell
		skipped []sample.Skip
		levers  []sample.Lever
		want    string // "": it can be measured
	}{
		{"all", []sample.Cell{cell("host", "lab"), cell("ovs", "lab")}, nil, nil, ""},
		{"nothing", nil, []sample.Skip{gone("host", "lab"), gone("ovs", "lab")}, nil,
			"nothing can be measured here: ovs: no module"},
		{"one for another reason", nil, []sample.Skip{gone("host", "lab"), gone("bridge", "lab"),
			{Mode: "ovs", On: "lab", Reason: "it never has this mode"}}, nil,
			"nothing can be measured here: bridge: no module"},
		{"most have no such route", nil, []sample.Skip{gone("host", "lab"),
			{Mode: "bridge", Reason: "no such route"}, {Mode: "ovs", Reason: "no such route"}}, nil,
			"nothing can be measured here: host: no module"},
		{"no baseline", []sample.Cell{cell("ovs", "lab")}, []sample.Skip{gone("host", "lab")}, nil,
			"the baseline host cannot be measured here: no module"},
		{"no baseline from one place", []sample.Cell{cell("host", "lab"), cell("ovs", "lab")},
			[]sample.Skip{gone("host", "lab")}, nil, ""},
		{"no backend", []sample.Cell{cell("host", "lab"), cell("ovs", "lab")},
			[]sample.Skip{gone("ovs", "docker")}, nil,
			"nothing can be measured here with --on docker: ovs: no module"},
		{"not what was asked for", []sample.Cell{cell("host", "lab")},
			[]sample.Skip{gone("ovs", "lab")}, nil, "nothing can be measured here: ovs: no module"},
		{"levers", []sample.Cell{cell("host", "lab")}, []sample.Skip{gone("ovs", "lab")},
			[]sample.Lever{{Name: "gro"}}, ""},
	} {
		p := sample.Plan{Baseline: "host", Cells: tt.cells, Skipped: tt.skipped, Levers: tt.levers}
		err := Measurable(p, []string{"lab", "docker"}, []mode.Name{"ovs"})
		var none *NothingError
		switch {
		case tt.want == "" && err == nil:
		case !errors.As(err, &none) || err.Error() != tt.want || none.Hint() != "load it":
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestUnmeasured(t *testing.T) {
	p := sample.Plan{Cells: []sample.Cell{{Mode: "host"}, {Mode: "ovs"}},
		Skipped: []sample.Skip{{Mode: "ovs", Reason: "not from there"},
			{Mode: "netkit", Reason: "old"},
			{Mode: "netkit", Reason: "old, too"}, {Mode: "overlay", Reason: "not asked for"}}}
	got := Unmeasured(p, []mode.Name{"host", "ovs", "netkit"})
	if len(got) != 1 || got[0].Reason != "old" {
		t.Errorf("%+v", got)
	}
}
