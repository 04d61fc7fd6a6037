package comparison

import (
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func both() []sample.Cell {
	var out []sample.Cell
	for _, load := range []string{"bulk", "rr"} {
		out = append(out, judgetest.Trio(mode.Bridge, load)...)
		out = append(out, judgetest.HostCell(mode.PublishNAT, load),
			judgetest.Cell(mode.PublishNAT, mode.FromHost, mode.ToAddress, load),
			judgetest.HostCell(mode.PublishProxy, load),
			judgetest.Cell(mode.PublishProxy, mode.FromHost, mode.ToLoopback6, load))
	}
	return out
}

func TestFindings(t *testing.T) {
	r := Judge(judgetest.New(t, both()...).Rounds(
		6, judgetest.Steady(8, 8, 6, 4, 5, 2, 1, 50, 50, 60, 75, 80, 150, 200)).File)
	judgetest.WantFinding(
		t, r, "Every row was witnessed: its bytes were counted on each hop of its path.")
	if len(r.Findings) != 1 {
		t.Errorf("findings %q", r.Findings)
	}
	want := []string{"Keep bridge: -25 % throughput, +20 % median latency.",
		"Avoid publish-nat :lo: -50 %, +50 %; publish-proxy :lo: -75 %, 3× " +
			"(dial the container's address)."}
	if r.Answer.Question != "Which network mode, by throughput and median latency?" ||
		!slices.Equal(r.Answer.Text, want) {
		t.Errorf("answer %+v, want %q", r.Answer, want)
	}
}

func TestFindingsOfUnreadHops(t *testing.T) {
	f := judgetest.New(t, both()...).Rounds(
		6, judgetest.Steady(8, 8, 6, 4, 5, 2, 1, 50, 50, 60, 75, 80, 150, 200)).File
	for i := range f.Header.Paths {
		if p := &f.Header.Paths[i]; p.Mode == mode.PublishNAT {
			p.Facts = map[string]string{
				sample.FactNotWitnessed: "all between the pods (--unprivileged)"}
		}
	}
	judgetest.WantFinding(
		t, Judge(f),
		"Every row was witnessed: its bytes were counted wherever toll could read counters."+
			" Not witnessed: of publish-nat :addr and publish-nat :lo, all between the pods (--unprivileged).")
}

func TestAnswersAreByPlacement(t *testing.T) {
	var cells []sample.Cell
	for _, from := range []mode.Placement{mode.FromContainer, mode.FromRemote} {
		to := map[mode.Placement]mode.Target{
			mode.FromContainer: mode.ToLoopback, mode.FromRemote: mode.ToAddress}[from]
		base := judgetest.Cell(mode.Host, from, to, "rr")
		cells = append(cells, base, judgetest.Control(base),
			judgetest.Cell(mode.PublishNAT, from, mode.ToAddress, "rr"),
			judgetest.Cell(mode.PublishProxy, from, mode.ToAddress, "rr"))
	}
	r := Judge(judgetest.New(t, cells...).Rounds(
		6, judgetest.Steady(50, 50, 60, 150, 40, 40, 80, 50)).File)
	want := []string{
		"From another container: keep publish-nat: +20 % median latency. Avoid publish-proxy: 3×: dial the container's address.",
		"From another machine: keep publish-proxy: +25 % median latency. Avoid publish-nat: 2×."}
	if !slices.Equal(r.Answer.Text, want) {
		t.Errorf("answer %q, want %q", r.Answer.Text, want)
	}
}

func TestAnswerTakesAllLoads(t *testing.T) {
	cells := append(append(judgetest.Trio(mode.Bridge, "bulk"),
		judgetest.Trio(mode.Bridge, "rr")...), judgetest.HostCell(mode.PublishNAT, "bulk"),
		judgetest.HostCell(mode.PublishNAT, "rr"))
	r := Judge(judgetest.New(t, cells...).Rounds(
		6, judgetest.Steady(8, 8, 8, 50, 50, 50, 7, 60), func(v *sample.Visit) {
			v.Witness.OK = v.Cell != 5
		}).File)
	if len(r.Answer.Text) != 1 || !strings.HasPrefix(r.Answer.Text[0],
		"Keep publish-nat :lo: -12 % throughput") || strings.Contains(r.Answer.Text[0], "bridge") {
		t.Errorf("answer %q", r.Answer.Text)
	}
}

func TestNothingWasMeasured(t *testing.T) {
	r := Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...).File)
	if len(r.Findings) != 1 || r.Findings[0] != "Nothing was measured." {
		t.Errorf("findings %q", r.Findings)
	}
	if len(r.Failed) != 2 || len(r.Cells) != 0 {
		t.Errorf("failed %+v, cells %+v", r.Failed, r.Cells)
	}
}
