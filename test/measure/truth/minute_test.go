package truth

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestPairedT(t *testing.T) {
	got, err := pairedT([]float64{1, 2, 3, 4, 5})
	// R: t.test(1:5) has 1.036757 to 4.963243.
	if err != nil || math.Abs(got.at-3) > 1e-9 || math.Abs(got.half-1.963243) > 1e-5 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := pairedT([]float64{1}); err == nil {
		t.Error("one pair has an interval")
	}
}

// Both tools' ratios are of one quantity: of what happens in a second.
func TestRatioIsOfTheRivalsMetric(t *testing.T) {
	ratio := func(x float64) analysis.Metric {
		return analysis.Metric{Ratio: &analysis.Ratio{Median: x, Low: x * 0.99, High: x * 1.01}}
	}
	report := &analysis.Report{}
	for _, load := range []string{bulk, rr} {
		report.Cells = append(report.Cells, analysis.Cell{
			Cell: sample.Cell{Mode: mode.Bridge, Load: load}, Primary: workload.LatencyP50,
			Metrics: map[string]analysis.Metric{workload.LatencyP50: ratio(1.25),
				workload.Throughput: ratio(0.8), workload.Transactions: ratio(0.8)}})
	}
	for _, r := range rivals {
		got, err := r.ratio(report, mode.Bridge)
		if err != nil || math.Abs(math.Exp(got.at)-0.8) > 1e-9 {
			t.Errorf("%s: %+v, %v", r.name, got, err)
		}
	}
}

func TestDrawMinute(t *testing.T) {
	rows := []minuteRow{
		{bulk, "iperf3", estimate{math.Log(0.95), 0.01}, estimate{math.Log(0.97), 0.2}},
		{rr, "qperf", estimate{math.Log(0.98), 0.004}, estimate{math.Log(0.96), 0.05}}}
	if got := rows[1].times(); math.Abs(got-12.8) > 0.1 {
		t.Errorf("qperf's interval is %.2f times wider", got)
	}
	svg := drawMinute(rows, scaleOf(false, false, 0),
		sample.Environment{CPUModel: "A & B <x>", CPUs: 2})
	for _, want := range []string{"A &amp; B &lt;x&gt;", "toll in 60 s, the others in 15 pairs",
		"0.950 ±1.0 %", "0.970 ±22.1 %", "0.980 ±0.4 %", "0.960 ±5.1 %",
		"prefers-color-scheme: dark", ">iperf3<", ">qperf<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is missing:\n%s", want, svg)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
