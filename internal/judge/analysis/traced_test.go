package analysis_test

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestTracedVisitsTakeNoPart(t *testing.T) {
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, workload.RR)...)
	r.File.Header.Plan.Trace = &sample.TracePlan{}
	r.Rounds(12, func(round, cell int) float64 {
		if round%2 == 1 {
			return 500 // traced
		}
		return []float64{20, 20, 25}[cell]
	}, func(v *sample.Visit) {
		if v.Round%2 == 1 {
			v.Trace = &sample.Trace{State: sample.Traced}
		}
	})
	c := judgetest.Find(t, analysis.Judge(r.File), mode.Bridge, workload.RR)
	m := c.Metrics[workload.LatencyP50]
	if !judgetest.Near(m.Median, 25e-6) || m.Ratio == nil || !judgetest.Near(m.Ratio.Median, 1.25) ||
		m.Ratio.N != 6 {
		t.Errorf("median %g, ratio %+v", m.Median, m.Ratio)
	}
	l := judge.Live(r.File.Header)
	for _, v := range r.File.Visits {
		l.Add(v)
	}
	s := l.Standings()
	if len(s) != 1 || !judgetest.Near(s[0].Ratio.Median, 1.25) || l.Known()[2] {
		t.Errorf("during the run: %+v", s)
	}
}

// A path that breaks in a traced epoch is broken.
func TestTracedVisitsFail(t *testing.T) {
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, workload.RR)...)
	r.Rounds(9, judgetest.Steady(20, 20, 25), func(v *sample.Visit) {
		if v.Round >= 3 && v.Round < 6 {
			v.Trace = &sample.Trace{State: sample.Traced}
			v.Witness.OK = v.Cell != 2
		}
	})
	if got := analysis.Judge(r.File); len(got.Failed) != 1 || got.Failed[0].Mode != mode.Bridge {
		t.Errorf("failed: %+v", got.Failed)
	}
}
