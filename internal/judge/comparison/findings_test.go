package comparison

import (
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
	wantFindings(t, r, "keep bridge", "avoid publish-nat :lo",
		"avoid publish-proxy :lo: dial-container", "witnessed")
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
	wantFindings(t, r, "keep publish-nat", "avoid publish-proxy: dial-container",
		"keep publish-proxy", "avoid publish-nat", "witnessed")
	if r.Found[0].From != mode.FromContainer || r.Found[2].From != mode.FromRemote {
		t.Errorf("%+v", r.Found)
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
	wantFindings(t, r, "keep publish-nat :lo", "witnessed")
}

func TestNothingWasMeasured(t *testing.T) {
	r := Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...).File)
	wantFindings(t, r, "nothing-measured")
	if len(r.Failed) != 2 || len(r.Cells) != 0 {
		t.Errorf("failed %+v, cells %+v", r.Failed, r.Cells)
	}
}
