package view

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/sweep"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// The bridge costs less with larger requests; the proxy always costs much.
func swept(t *testing.T) *sweep.Report {
	s := &sample.Sweep{Axis: "request", Unit: "B",
		Points: []sample.Point{{Name: "1", Value: 1}, {Name: "1400", Value: 1400},
			{Name: "16k", Value: 16384}}}
	times := [][]float64{{20, 20, 25, 60}, {24, 24, 27, 70}, {60, 60, 60.3, 130}} // µs
	var cells []sample.Cell
	var loads []sample.Load
	var xs, shares []float64
	for i, p := range s.Points {
		loads = append(loads, sample.Load{Kind: workload.RR, Point: p.Name, Window: 1,
			Options: sample.RROptions{Messages: sample.Messages{Request: int(p.Value), Reply: 1}}})
		for k, c := range append(judgetest.Trio(mode.Bridge, workload.RR),
			judgetest.HostCell(mode.PublishProxy, workload.RR)) {
			c.Point = p.Name
			cells, xs, shares = append(cells, c), append(xs, times[i][k]),
				append(shares, []float64{0.001, 0.002, 0.004, 0.003}[k])
		}
	}
	r := judgetest.New(t, cells...)
	p := &r.File.Header.Plan
	p.Study, p.Sweep, p.Loads, p.Same = sample.StudySweep, s, loads, 0.03
	return sweep.Judge(r.Rounds(12, judgetest.Noisy(shares, xs...)).File)
}

func TestSweepTable(t *testing.T) {
	r := swept(t)
	got := table(t, r, format.Options{})
	golden(t, "sweep.txt", got)
	fits(t, got)
	r.Cells, r.Curves, r.Found = nil, nil, nil
	fits(t, table(t, r, format.Options{}))
}

func TestSweepInFigures(t *testing.T) {
	r := swept(t)
	for name, want := range map[string]string{
		"csv":         ",,,,16k,\n",
		"openmetrics": `load="rr",point="16k"`,
		"benchfmt":    "BenchmarkSweep/mode=bridge/from=host/to=container/on=lab/load=rr/point=16k",
		"json":        `"shape": "up to"`,
		"markdown":    "up to between",
		"html":        "Median latency by request size, against host",
	} {
		if got := written(t, name, Report(r), format.Options{}); !strings.Contains(got, want) {
			t.Errorf("%s: %q is not in %.3000s", name, want, got)
		}
	}
}
