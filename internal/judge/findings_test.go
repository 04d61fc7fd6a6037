package judge

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/judgetest"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func wantFinding(t *testing.T, r *analysis.Report, want string) {
	t.Helper()
	for _, f := range r.Findings {
		if strings.Contains(f, want) {
			return
		}
	}
	t.Errorf("findings:\n%s\nwant %q", strings.Join(r.Findings, "\n"), want)
}

func noFinding(t *testing.T, r *analysis.Report, unwanted string) {
	t.Helper()
	for _, f := range r.Findings {
		if strings.Contains(f, unwanted) {
			t.Errorf("unwanted finding %q", f)
		}
	}
}

// both is a group for each load with everything that keeps port isolation.
func both() []sample.Cell {
	var out []sample.Cell
	for _, load := range []string{"bulk", "rr"} {
		out = append(out, judgetest.Trio(mode.Bridge, load)...)
		out = append(out, judgetest.HostCell(mode.PublishNAT, load), judgetest.Cell(mode.PublishNAT, mode.FromHost, mode.ToAddress, load),
			judgetest.HostCell(mode.PublishProxy, load), judgetest.Cell(mode.PublishProxy, mode.FromHost, mode.ToLoopback6, load))
	}
	return out
}

func TestFindings(t *testing.T) {
	r := Judge(judgetest.New(t, both()...).Rounds(6, judgetest.Steady(8, 8, 6, 4, 5, 2, 1, 50, 50, 60, 75, 80, 150, 200)).File).Base()
	wantFinding(t, r, "Every row was witnessed: its bytes were counted on each hop of its path.")
	wantFinding(t, r, "Cheapest from the machine itself that keeps port isolation: bridge, with 0.75 ±0.00 of host's throughput (worse)"+
		" and 1.20 ±0.00 times host's median latency (worse).")
	// Against NAT at the same target, not against the baseline; ::1 has no
	// NAT to be held against and is not told twice.
	wantFinding(t, r, "Publishing through docker-proxy, from the machine itself: 0.50 ±0.00 of publish-nat :lo's throughput (worse)"+
		" and 2.00 ±0.00 times publish-nat :lo's median latency (worse).")
	if len(r.Findings) != 3 {
		t.Errorf("findings %q", r.Findings)
	}
}

// What nobody could read is not called witnessed.
func TestFindingsOfUnreadHops(t *testing.T) {
	f := judgetest.New(t, both()...).Rounds(6, judgetest.Steady(8, 8, 6, 4, 5, 2, 1, 50, 50, 60, 75, 80, 150, 200)).File
	for i := range f.Header.Paths {
		if p := &f.Header.Paths[i]; p.Mode == string(mode.PublishNAT) {
			p.Facts = map[string]string{sample.FactNotWitnessed: "all between the pods (--unprivileged)"}
		}
	}
	wantFinding(t, Judge(f).Base(), "Every row was witnessed: its bytes were counted wherever toll could read counters."+
		" Not witnessed: of publish-nat :addr and publish-nat :lo, all between the pods (--unprivileged).")
}

func TestFindingsAreByPlacement(t *testing.T) {
	var cells []sample.Cell
	for _, from := range []mode.Placement{mode.FromContainer, mode.FromRemote} {
		to := map[mode.Placement]mode.Target{mode.FromContainer: mode.ToLoopback, mode.FromRemote: mode.ToAddress}[from]
		base := judgetest.Cell(mode.Host, from, to, "rr")
		cells = append(cells, base, judgetest.Control(base), judgetest.Cell(mode.PublishNAT, from, mode.ToAddress, "rr"), judgetest.Cell(mode.PublishProxy, from, mode.ToAddress, "rr"))
	}
	r := Judge(judgetest.New(t, cells...).Rounds(6, judgetest.Steady(50, 50, 75, 150, 40, 40, 80, 60)).File).Base()
	wantFinding(t, r, "Cheapest from another container that keeps port isolation: publish-nat, with 1.50")
	wantFinding(t, r, "Cheapest from another machine that keeps port isolation: publish-proxy, with 1.50")
	wantFinding(t, r, "docker-proxy, from another container: 2.00 ±0.00 times publish-nat's median latency (worse)")
	wantFinding(t, r, "docker-proxy, from another machine: 0.75 ±0.00 times publish-nat's median latency (better)")
}

// The cheapest is the best over all loads, by the mean of the logarithms.
func TestCheapestOverLoads(t *testing.T) {
	cells := append(judgetest.Trio(mode.Bridge, "bulk"), judgetest.HostCell(mode.PublishProxy, "bulk"))
	cells = append(append(cells, judgetest.Trio(mode.Bridge, "rr")...), judgetest.HostCell(mode.PublishProxy, "rr"))
	// bridge: 4 × 1.1, docker-proxy: 1.5 × 2
	r := Judge(judgetest.New(t, cells...).Rounds(6, judgetest.Steady(8, 8, 2, 8/1.5, 50, 50, 55, 100)).File).Base()
	wantFinding(t, r, "keeps port isolation: publish-proxy")
}

// A mode that has no result under one load is not the cheapest of all.
func TestCheapestTakesAllLoads(t *testing.T) {
	cells := append(append(judgetest.Trio(mode.Bridge, "bulk"), judgetest.Trio(mode.Bridge, "rr")...), judgetest.HostCell(mode.PublishNAT, "bulk"), judgetest.HostCell(mode.PublishNAT, "rr"))
	r := Judge(judgetest.New(t, cells...).Rounds(6, judgetest.Steady(8, 8, 8, 50, 50, 50, 4, 90), func(v *sample.Visit) { v.Witness.OK = v.Cell != 5 }).File).Base()
	wantFinding(t, r, "publish-nat :lo keeps port isolation, from the machine itself, with 0.50")
	noFinding(t, r, "heapest") // of one
}

// A baseline that alone keeps it has nothing to be said of.
func TestCheapestOfTheBaselineAlone(t *testing.T) {
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, "rr")...).Rounds(6, judgetest.Steady(50, 50, 60))
	for i := range r.File.Header.Plan.Cells {
		c := &r.File.Header.Plan.Cells[i]
		c.Mode, c.To = map[bool]string{true: "host", false: "bridge"}[c.Mode == "bridge"], "container"
	}
	r.File.Header.Plan.Baseline = "bridge"
	noFinding(t, Judge(r.File).Base(), "port isolation")
}

func TestFindingsWithoutNAT(t *testing.T) {
	t.Run("against-the-baseline", func(t *testing.T) {
		r := Judge(judgetest.New(t, judgetest.Trio(mode.PublishProxy, "bulk")...).Rounds(6, judgetest.Steady(8, 8, 2)).File).Base()
		wantFinding(t, r, "Publishing through docker-proxy, from the machine itself: 0.25 ±0.00 of host's throughput (worse).")
	})
	t.Run("nat-failed", func(t *testing.T) {
		cells := append(judgetest.Trio(mode.PublishProxy, "bulk"), judgetest.HostCell(mode.PublishNAT, "bulk"))
		r := Judge(judgetest.New(t, cells...).Rounds(6, judgetest.Steady(8, 8, 2, 4), func(v *sample.Visit) { v.Witness.OK = v.Cell != 3 }).File).Base()
		wantFinding(t, r, "from the machine itself: 0.25 ±0.00 of host's throughput (worse).")
	})
	t.Run("no-proxy", func(t *testing.T) {
		r := Judge(judgetest.New(t, judgetest.Trio(mode.PublishNAT, "bulk")...).Rounds(6, judgetest.Steady(8, 8, 2)).File).Base()
		noFinding(t, r, "docker-proxy")
	})
	t.Run("ipv6-alone", func(t *testing.T) {
		base := judgetest.HostCell(mode.Host, "bulk")
		r := Judge(judgetest.New(t, base, judgetest.Control(base), judgetest.Cell(mode.PublishProxy, mode.FromHost, mode.ToLoopback6, "bulk")).Rounds(6, judgetest.Steady(8, 8, 2)).File).Base()
		for _, f := range r.Findings {
			if strings.HasPrefix(f, "Publishing through docker-proxy") {
				return
			}
		}
		t.Error("with --to loopback6 docker-proxy's price is not told, because its IPv4 sister would tell it")
	})
}

func TestNothingWasMeasured(t *testing.T) {
	r := Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...).File).Base()
	if len(r.Findings) != 1 || r.Findings[0] != "Nothing was measured." {
		t.Errorf("findings %q", r.Findings)
	}
	if len(r.Failed) != 2 || len(r.Cells) != 0 {
		t.Errorf("failed %+v, cells %+v", r.Failed, r.Cells)
	}
}

// Without any mode that isolates ports nothing is called the cheapest, and
// with rounds too few for a verdict neither.
func TestNoCheapest(t *testing.T) {
	t.Run("none-isolates", func(t *testing.T) {
		noFinding(t, Judge(judgetest.New(t, judgetest.Trio(mode.Native, "bulk")...).Rounds(6, judgetest.Steady(8, 8, 9)).File).Base(), "heapest")
	})
	t.Run("few-rounds", func(t *testing.T) {
		noFinding(t, Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...).Rounds(2, judgetest.Steady(8, 8, 4)).File).Base(), "Cheapest")
	})
}

// The baseline itself may be the cheapest that isolates ports.
func TestCheapestMayBeTheBaseline(t *testing.T) {
	base := judgetest.HostCell(mode.Bridge, "bulk")
	r := judgetest.New(t, base, judgetest.Control(base), judgetest.HostCell(mode.PublishProxy, "bulk"))
	r.File.Header.Plan.Baseline = string(mode.Bridge)
	for _, f := range Judge(r.Rounds(6, judgetest.Steady(8, 8, 2)).File).Base().Findings {
		if strings.Contains(f, "keeps port isolation: publish-proxy") {
			t.Errorf("the baseline costs a quarter of that: %q", f)
		}
	}
}
