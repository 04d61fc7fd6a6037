package analysis

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// What nothing is known of is unclear.
func TestLiveVerdictOfNothing(t *testing.T) {
	l := NewLive(newRun(t, trio(mode.Bridge, "rr")...).f.Header.Plan, ToBaseline)
	if v := l.j.verdict(compared{}, l.noise(2), true); v != stats.Unclear {
		t.Errorf("verdict %s", v)
	}
}
