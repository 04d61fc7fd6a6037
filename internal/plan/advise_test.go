package plan

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func adviceRequest() Request {
	return Request{Baseline: mode.Bridge, From: []mode.Placement{mode.FromHost, mode.FromRemote},
		On: []string{sample.Lab},
		Loads: []sample.Load{{Kind: "bulk", Window: 0.05, Slice: 0.004},
			{Kind: "crr", Window: 0.25}},
		Budget: 60, Precision: 0.02, Same: 0.03, Epoch: 1, Seed: 1}
}

// Another mode replaces one that cannot be reached.
func TestAdvice(t *testing.T) {
	p, err := Advice(adviceRequest(), []sample.Lever{
		{Name: "gro", Variant: sample.Variant{Mode: "bridge", Tune: "gro=on"}},
		{Name: "netkit", Variant: sample.Variant{Mode: "netkit"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "host bridge bulk, host bridge bulk control, host bridge+gro=on bulk, host " +
		"netkit bulk, " +
		"remote publish-nat bulk, remote publish-nat bulk control, remote publish-nat+gro=on bulk"
	if got := judgetest.Named(p.Cells); got != want {
		t.Errorf("cells %s", got)
	}
	if p.Study != sample.StudyAdvise || p.Elsewhere != "publish-nat" || len(p.Skipped) > 0 {
		t.Errorf("plan %+v", p)
	}
	for _, c := range p.Cells {
		base := c.Tune == "" && c.Mode != "netkit"
		if p.IsBaseline(c) != base {
			t.Errorf("%+v: baseline %t", c, !base)
		}
	}
	for _, c := range p.Cells[len(p.Cells)-1:] {
		if got := p.VariantOf(c); got != (sample.Variant{Mode: "bridge", Tune: "gro=on"}) {
			t.Errorf("%+v is a cell of %v", c, got)
		}
	}
}

func TestAdviceIsSliced(t *testing.T) {
	p, err := Advice(adviceRequest(), []sample.Lever{
		{Name: "gro", Variant: sample.Variant{Mode: "bridge", Tune: "gro=on"}}})
	if err != nil {
		t.Fatal(err)
	}
	all := []int{0, 1, 2, 3, 4, 5}
	for i, g := range groupsOf(p, all) {
		if len(g.bases) != 2 || len(g.others) != 1 {
			t.Errorf("group %d: %+v", i, g)
		}
	}
}

// The route to outside is searched if it is requested, and where a placement has no other.
func TestAdviceOutward(t *testing.T) {
	r := adviceRequest()
	r.From = []mode.Placement{mode.FromHost, mode.FromContainer}
	r.Baseline, r.Loads = mode.RootlessPublish, r.Loads[:1]
	levers := lever.Plan(r.Baseline, lever.Host{CPUs: 2},
		[]string{"rootless-nat", "mtu-65520", "fast", "socket-activation", "host", "rootful"})
	p, err := Advice(r, levers)
	if err != nil {
		t.Fatal(err)
	}
	want := "host rootless-publish bulk, host rootless-publish bulk control, " +
		"host rootless-publish-nat bulk, host rootless-publish+mtu=65520 bulk, " +
		"host publish bulk, " +
		"container rootless-publish bulk, container rootless-publish bulk control, " +
		"container rootless-publish-nat bulk, container rootless-publish+mtu=65520 bulk"
	if got := judgetest.Named(p.Cells); got != want {
		t.Errorf("cells %s", got)
	}
	for _, c := range p.Cells {
		if out := c.To == mode.ToOutside; out != (c.From == mode.FromContainer) {
			t.Errorf("%+v", c)
		}
	}
	for _, no := range []mode.Name{mode.Fast, mode.Host} {
		if !slices.ContainsFunc(p.Skipped, func(s sample.Skip) bool {
			return s.Mode == no && s.Reason != "" && s.Remedy == ""
		}) {
			t.Errorf("%s is not refused: %+v", no, p.Skipped)
		}
	}

	r.Baseline, r.To = mode.Bridge, []mode.Target{mode.ToOutside}
	p, err = Advice(r, lever.Plan(mode.Bridge, lever.Host{}, []string{"mtu", "host", "netkit"}))
	if err != nil {
		t.Fatal(err)
	}
	want = "container bridge bulk, container bridge bulk control, container " +
		"bridge+mtu=9000 bulk, " +
		"container host bulk"
	if got := judgetest.Named(p.Cells); got != want {
		t.Errorf("outward: %s", got)
	}
}

// Two levers may replace the mode by the same one.
func TestAdviceMeasuresAModeOnce(t *testing.T) {
	r := adviceRequest()
	r.Baseline, r.Loads = mode.Pasta, r.Loads[:1]
	r.From = []mode.Placement{mode.FromHost, mode.FromContainer}
	p, err := Advice(r, lever.Plan(r.Baseline, lever.Host{}, []string{"socket-activation"}))
	want := "host pasta bulk, host pasta bulk control, host host bulk, " +
		"container pasta bulk, container pasta bulk control"
	if got := judgetest.Named(p.Cells); err != nil || got != want {
		t.Errorf("socket activation: %s, %v", got, err)
	}
	p, err = Advice(r, lever.Plan(r.Baseline, lever.Host{}, []string{"socket-activation", "host"}))
	if got := judgetest.Named(p.Cells); err != nil || got != want+", container host bulk" {
		t.Errorf("with host: %s, %v", got, err)
	}
}

// A lever of the whole machine is tried in visits, because all variants share the slices.
func TestAdviceOfMachine(t *testing.T) {
	levers := []sample.Lever{
		{Name: "gro", Variant: sample.Variant{Mode: "bridge", Tune: "gro=on"}},
		{Name: "idle-poll", Variant: sample.Variant{Mode: "bridge", Tune: "idle=poll"}},
	}
	r := adviceRequest()
	r.From = r.From[:1]
	for _, x := range []struct {
		name  string
		loads []sample.Load
		want  string
		skips int
	}{
		{"visits", r.Loads, "host bridge bulk, host bridge bulk control, host bridge+gro=on bulk, " +
			"host bridge crr, host bridge crr control, host bridge+idle=poll crr", 0},
		{"slices", []sample.Load{{Kind: "rr", Window: 0.05, Slice: 0.004}},
			"host bridge rr, host bridge rr control, host bridge+gro=on rr", 1},
		{"whole", []sample.Load{{Kind: "bulk", Window: 0.25}, {Kind: "rr", Window: 0.25}},
			"host bridge bulk, host bridge bulk control, host bridge+gro=on bulk, host bridge rr, " +
				"host bridge rr control, host bridge+gro=on rr, host bridge+idle=poll rr", 0},
	} {
		r.Loads = x.loads
		p, err := Advice(r, levers)
		if got := judgetest.Named(p.Cells); err != nil || got != x.want ||
			len(p.Skipped) != x.skips {
			t.Errorf("%s: %v, %+v: cells %s", x.name, err, p.Skipped, got)
		}
	}
}
