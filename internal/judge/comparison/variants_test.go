package comparison

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func tuned(c sample.Cell, tunes mode.Tunes) sample.Cell {
	c.Tune = tunes
	return c
}

func TestVariants(t *testing.T) {
	var cells []sample.Cell
	for _, load := range []string{"bulk", "rr"} {
		base, bridge := judgetest.HostCell(mode.Host, load), judgetest.HostCell(mode.Bridge, load)
		cells = append(cells, base, judgetest.Control(base), tuned(base, "mtu=9000"), bridge,
			tuned(bridge, "mtu=9000"))
	}
	r := Judge(judgetest.New(t, cells...).Rounds(
		6, judgetest.Steady(8, 8, 8, 4, 6, 50, 50, 50, 60, 60)).File)
	if len(r.Cells) != 8 || len(r.Control.Groups) != 2 {
		t.Fatalf("%d cells, %d groups", len(r.Cells), len(r.Control.Groups))
	}
	found := false
	for _, c := range r.Cells {
		if c.Baseline != (c.Mode == "host" && c.Tune == "") {
			t.Errorf("%s is the baseline: %t", c.Label(), c.Baseline)
		}
		if c.Label() == "bridge+mtu=9000" && c.Load == "bulk" {
			found = true
			if x := c.Metrics[workload.Throughput].Ratio; x == nil ||
				!judgetest.Near(x.Median, 0.75) {
				t.Errorf("ratio %v, want 0.75 of the untuned baseline", x)
			}
			if len(c.Hops) == 0 {
				t.Error("its path is missing")
			}
		}
	}
	if !found {
		t.Error("the variant is missing")
	}
	judgetest.WantFinding(
		t, r,
		"bridge+mtu=9000 from the machine itself: 150 % of bridge's throughput (better) and 100 % of bridge's median latency (same).")
	judgetest.WantFinding(
		t, r, "host+mtu=9000 from the machine itself: 100 % of host's throughput (same)")
}

func TestLimitedByTheWire(t *testing.T) {
	base := judgetest.Cell(mode.Host, mode.FromRemote, mode.ToAddress, "bulk")
	nat := judgetest.Cell(mode.PublishNAT, mode.FromRemote, mode.ToAddress, "bulk")
	r := judgetest.New(t, base, judgetest.Control(base), nat)
	r.File.Header.Plan.Wire = &sample.Wire{Rate: 10e9}
	report := Judge(r.Rounds(6, judgetest.Steady(9.4, 9.4, 5)).File)
	if got := judgetest.Find(t, report, mode.Host, "bulk").LimitedBy; got != "wire" {
		t.Errorf("at the wire's rate it is limited by %q", got)
	}
	if got := judgetest.Find(t, report, mode.PublishNAT, "bulk").LimitedBy; got != "" {
		t.Errorf("at half the wire's rate it is limited by %q", got)
	}
	if report.Plan.Wire == nil || report.Plan.Wire.Rate != 10e9 {
		t.Errorf("the report's wire is %+v", report.Plan.Wire)
	}
	// Two modes that fill the wire differ in CPU time only.
	routed := judgetest.Cell(mode.Routed, mode.FromRemote, mode.ToContainer, "bulk")
	full := judgetest.New(t, base, judgetest.Control(base), nat, routed)
	full.File.Header.Plan.Wire = &sample.Wire{Rate: 10e9}
	full.Rounds(6, judgetest.Steady(9.4, 9.4, 9.41, 9.4), func(v *sample.Visit) {
		if v.Cell == 2 {
			v.Machine[1].SoftIRQ, v.Machine[1].Idle = 0.8, 0
		}
	})
	fr := Judge(full.File)
	if fr.Cells[1].Mode != mode.Routed || fr.Cells[2].Mode != mode.PublishNAT {
		t.Errorf("the order is %s, %s", fr.Cells[1].Mode, fr.Cells[2].Mode)
	}
	for i, want := range []string{"Keep routed: the same (peers need a route, and every published container port answers " +
		"there).",
		"Avoid publish-nat: fills the wire, +87 % CPU time."} {
		if fr.Answer.Text[i] != want {
			t.Errorf("answer %q, want %q", fr.Answer.Text, want)
		}
	}
	over := judgetest.New(t, base, judgetest.Control(base), nat)
	over.File.Header.Plan.Wire = &sample.Wire{Rate: 10e9}
	c := judgetest.Find(t, Judge(over.Rounds(6, judgetest.Steady(9.4, 9.4, 15)).File),
		mode.PublishNAT, "bulk")
	if c.LimitedBy != "" || !slices.Contains(judgetest.Codes(c.Warnings), "over-wire") {
		t.Errorf("above the wire's rate it is limited by %q, warnings %v", c.LimitedBy, c.Warnings)
	}
	local := judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...)
	local.File.Header.Plan.Wire = &sample.Wire{Rate: 10e9}
	if got := judgetest.Find(t, Judge(local.Rounds(6, judgetest.Steady(60, 60, 50)).File), mode.Bridge, "bulk").LimitedBy; got == "wire" {
		t.Error("a path without the wire is limited by it")
	}
}

func TestPacingIsInTheAnswer(t *testing.T) {
	const unpaced = "congestion=reno"
	cells := judgetest.Trio(mode.Bridge, "bulk")
	for _, c := range []sample.Cell{cells[0], cells[2]} {
		c.Tune = unpaced
		cells = append(cells, c)
	}
	answer := func(rates ...float64) string {
		r := judgetest.New(t, cells...)
		r.File.Header.Plan.Unpaced = unpaced
		r.File.Header.Environment.Congestion = "bbr"
		return strings.Join(Judge(r.Rounds(6, judgetest.Steady(rates...)).File).Answer.Text, "\n")
	}
	for _, tt := range []struct {
		rates []float64
		want  string
	}{
		{[]float64{20, 20, 15, 50, 50}, "Keep bridge: -25 % throughput, all of it bbr's pacing: 0 % with reno."},
		{[]float64{20, 20, 15.4, 50, 49.1}, "Keep bridge: -23 % throughput, nearly all of it bbr's pacing: -2 % with reno."},
		{[]float64{20, 20, 15.4, 50, 45}, "Keep bridge: -23 % throughput, most of it bbr's pacing: -10 % with reno."},
		{[]float64{20, 20, 18, 50, 30}, "Keep bridge: -10 % throughput, reduced by bbr's pacing: -40 % with reno."},
		{[]float64{20, 20, 19, 50, 47.5}, "Keep bridge: -5 % throughput."},
	} {
		if got := answer(tt.rates...); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.rates, got, tt.want)
		}
	}
}

// The cost of IPv6 is a path's ratio to the same path over IPv4, whatever the baseline is.
func TestIPv6AgainstIPv4(t *testing.T) {
	base := judgetest.HostCell(mode.Host, "bulk")
	r := judgetest.New(t, base, judgetest.Control(base), judgetest.HostCell(mode.Bridge, "bulk"),
		judgetest.Cell(mode.Bridge, mode.FromHost, mode.ToContainer6, "bulk"),
		judgetest.Cell(mode.PublishProxy, mode.FromHost, mode.ToAddress6, "bulk"))
	a := Judge(r.Rounds(12, judgetest.Steady(10, 10, 8, 6, 4)).File).Answer
	const want = "bridge over IPv6, from the machine itself: 75 % of IPv4's throughput (worse)."
	if a.Question != "What does IPv6 cost against IPv4?" || len(a.Text) < 2 || a.Text[0] != want ||
		strings.Contains(strings.Join(a.Text, "\n"), "publish-proxy over IPv6") {
		t.Errorf("%+v, want %q first, and nothing of a path without its like over IPv4", a, want)
	}
}
