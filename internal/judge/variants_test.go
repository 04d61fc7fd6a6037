package judge

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func tuned(c sample.Cell, tunes string) sample.Cell {
	c.Tune = tunes
	return c
}

// A variant's ratio is to the baseline untuned, and what it gains against its
// mode is said.
func TestVariants(t *testing.T) {
	var cells []sample.Cell
	for _, load := range []string{"bulk", "rr"} {
		base, bridge := hostCell(mode.Host, load), hostCell(mode.Bridge, load)
		cells = append(cells, base, control(base), tuned(base, "mtu=9000"), bridge, tuned(bridge, "mtu=9000"))
	}
	r := newRun(t, cells...).rounds(6, steady(8, 8, 8, 4, 6, 50, 50, 50, 60, 60)).judge()
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
			if x := c.Metrics[workload.Throughput].Ratio; x == nil || !near(x.Median, 0.75) {
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
	wantFinding(t, r, "bridge+mtu=9000 from host: 1.50 ±0.00 of bridge's throughput (better) and 1.00 ±0.00 times bridge's median latency (same).")
	wantFinding(t, r, "host+mtu=9000 from host: 1.00 ±0.00 of host's throughput (same)")
}

// A path over a wire with a rate is limited by it once it is full.
func TestLimitedByTheWire(t *testing.T) {
	base := cell(mode.Host, mode.FromRemote, mode.ToAddress, "bulk")
	nat := cell(mode.PublishNAT, mode.FromRemote, mode.ToAddress, "bulk")
	r := newRun(t, base, control(base), nat)
	r.f.Header.Plan.Wire = &sample.Wire{Rate: 10e9}
	report := r.rounds(6, steady(9.4, 9.4, 5)).judge()
	if got := find(t, report, mode.Host, "bulk").LimitedBy; got != "wire" {
		t.Errorf("at the wire's rate it is limited by %q", got)
	}
	if got := find(t, report, mode.PublishNAT, "bulk").LimitedBy; got != "" {
		t.Errorf("at half the wire's rate it is limited by %q", got)
	}
	if report.Plan.Wire == nil || report.Plan.Wire.Rate != 10e9 {
		t.Errorf("the report's wire is %+v", report.Plan.Wire)
	}
	// Two modes that fill the wire differ in CPU time only.
	routed := cell(mode.Routed, mode.FromRemote, mode.ToContainer, "bulk")
	full := newRun(t, base, control(base), nat, routed)
	full.f.Header.Plan.Wire = &sample.Wire{Rate: 10e9}
	full.rounds(6, steady(9.4, 9.4, 9.41, 9.4), func(v *sample.Visit) {
		if v.Cell == 2 {
			v.Machine[1].SoftIRQ, v.Machine[1].Idle = 0.8, 0
		}
	})
	fr := full.judge()
	if fr.Cells[1].Mode != string(mode.Routed) || fr.Cells[2].Mode != string(mode.PublishNAT) {
		t.Errorf("the order is %s, %s", fr.Cells[1].Mode, fr.Cells[2].Mode)
	}
	wantFinding(t, fr, "Cheapest from remote that keeps port isolation: routed, with the wire's rate at 1.00 ±0.00 times host's CPU time per byte (same).")
	wantFinding(t, fr, "At the wire's rate from remote, in host's CPU time per byte: routed 1.00 ±0.00 (same), publish-nat 1.87 ±0.00 (worse).")
	over := newRun(t, base, control(base), nat)
	over.f.Header.Plan.Wire = &sample.Wire{Rate: 10e9}
	c := find(t, over.rounds(6, steady(9.4, 9.4, 15)).judge(), mode.PublishNAT, "bulk")
	if c.LimitedBy != "" || !slices.Contains(codes(c.Warnings), "over-wire") {
		t.Errorf("above the wire's rate it is limited by %q, warnings %v", c.LimitedBy, c.Warnings)
	}
	local := newRun(t, trio(mode.Bridge, "bulk")...)
	local.f.Header.Plan.Wire = &sample.Wire{Rate: 10e9}
	if got := find(t, local.rounds(6, steady(60, 60, 50)).judge(), mode.Bridge, "bulk").LimitedBy; got == "wire" {
		t.Error("a path without the wire is limited by it")
	}
}
