package judge

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestLabelsOfALiveLadder(t *testing.T) {
	for study, want := range map[sample.Study]string{sample.StudyCompare: "bridge",
		sample.StudyLadder: "bridge/host"} {
		r := judgetest.New(t, judgetest.Trio(mode.Bridge, "rr")...)
		r.File.Header.Plan.Study = study
		r.Rounds(6, judgetest.Steady(20, 20, 25))
		l := Live(r.File.Header)
		for _, v := range r.File.Visits {
			l.Add(v)
		}
		if got := l.Standings(); len(got) != 1 || got[0].Label != want {
			t.Errorf("study %q: %+v, want %s", study, got, want)
		}
	}
}
