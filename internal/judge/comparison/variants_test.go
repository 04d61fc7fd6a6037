package comparison

import (
	"slices"
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
	want := []string{"tuned host+mtu=9000 1.00 of host (same) 1.00 of host (same)",
		"tuned bridge+mtu=9000 1.50 of bridge (better) 1.00 of bridge (same)"}
	if got := labelled(r, r.Found); !slices.Equal(got[1:3], want) {
		t.Errorf("got %q, want %q", got, want)
	}
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
	wantFindings(t, fr, "keep routed", "avoid publish-nat",
		"hidden-by-link host, routed, publish-nat",
		"witnessed")
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

// The cost of IPv6 is a path's ratio to the same path over IPv4, whatever the baseline is.
func TestIPv6AgainstIPv4(t *testing.T) {
	base := judgetest.HostCell(mode.Host, "bulk")
	r := judgetest.New(t, base, judgetest.Control(base), judgetest.HostCell(mode.Bridge, "bulk"),
		judgetest.Cell(mode.Bridge, mode.FromHost, mode.ToContainer6, "bulk"),
		judgetest.Cell(mode.PublishProxy, mode.FromHost, mode.ToAddress6, "bulk"))
	wantFindings(t, Judge(r.Rounds(12, judgetest.Steady(10, 10, 8, 6, 4)).File),
		"over-ipv6 bridge :ctr6 0.75 of IPv4 (worse)",
		"compared bridge, bridge :ctr6, publish-proxy :addr6",
		"witnessed")
}
