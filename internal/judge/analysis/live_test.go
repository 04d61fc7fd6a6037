package analysis

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestLiveVerdictOfNothing(t *testing.T) {
	host, bridge := mode.Host, mode.Bridge
	l := NewLive(sample.Header{Plan: sample.Plan{Baseline: string(host),
		Cells: []sample.Cell{{Mode: host, Load: "rr"}, {Mode: host, Load: "rr", Control: true},
			{Mode: bridge, Load: "rr"}}}}, ToBaseline)
	if v := l.j.verdict(compared{}, l.noise(2), true); v != stats.Unclear {
		t.Errorf("verdict %s", v)
	}
}
