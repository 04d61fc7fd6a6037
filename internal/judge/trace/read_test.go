package trace_test

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/gate"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// Gates and the history judge untraced visits only.
func TestReadByOthers(t *testing.T) {
	f := file(t, 12, judgetest.BridgeTrip())
	for i := range f.Visits {
		v := &f.Visits[i]
		if v.Trace == nil {
			continue
		}
		for k := range v.Slices.Medians {
			v.Slices.Medians[k] *= float64(10 * (1 + v.Cell))
		}
	}
	var sentences []gate.Sentence
	for _, text := range []string{"bridge.latency <= 1.3 of host", "bridge.latency > 1.3 of host"} {
		s, err := gate.Parse(text, gate.WordsOf(f))
		if err != nil {
			t.Fatal(err)
		}
		sentences = append(sentences, s)
	}
	g := gate.Judge("trace", f, sentences)
	if g.Rules[0].Outcome != gate.Holds || g.Rules[1].Outcome != gate.Violated {
		t.Errorf("%+v", g.Rules)
	}
	s := trend.Summarize(f.Header, trace.Judge(f).Base(), "1.0")
	if len(s.Rows) != 1 || s.Rows[0].Median > 1.3 || s.Study != sample.StudyTrace ||
		s.CommandLine() != "toll trace …" {
		t.Errorf("%+v", s)
	}
}
