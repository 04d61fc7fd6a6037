package analysis_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/comparison"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// fitful judges a run of a bridge with the given rates in turn and of a host at 40 Gbit/s.
func fitful(t *testing.T, noise float64, rates ...float64) *analysis.Report {
	t.Helper()
	return comparison.Judge(judgetest.New(t, judgetest.Trio(mode.Bridge, "bulk")...).Rounds(
		12, func(round, cell int) float64 {
			if cell == 2 {
				return rates[round%len(rates)]
			}
			if cell == 1 && round%2 == 0 {
				return 40 * noise
			}
			return 40
		}, func(v *sample.Visit) {
			if v.Cell == 2 {
				v.Client.TCP = sample.TCPInfo{Retransmits: 7, Resent: 2e6, RTO: 0.204}
				v.Client.TotalSent = 1e8
			}
		}).File)
}

func TestVaryingRow(t *testing.T) {
	for _, tt := range []struct {
		name    string
		rates   []float64
		noise   float64
		varies  bool
		verdict stats.Verdict
		says    string // of the ratio
	}{
		{"all-of-it-worse", []float64{0.02, 2.2, 0.3, 0.05}, 1, true, stats.Worse, "0.05–5.5 %"},
		{"around-the-baseline", []float64{4, 80, 8, 60}, 1, true, stats.Unclear, "10–200 %"},
		{"all-of-it-better", []float64{400, 8000, 800, 6000}, 1, true, stats.Better, "10–200×"},
		{"steady", []float64{20, 21}, 1, false, stats.Worse, "51 % (50–52)"},
		{"so-is-the-machine", []float64{0.02, 2.2, 0.3, 0.05}, 0.01, false, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := fitful(t, tt.noise, tt.rates...)
			c := judgetest.Find(t, r, mode.Bridge, "bulk")
			x := c.Metrics[workload.Throughput].Ratio
			if (c.Varies != nil) != tt.varies || x.Varies != tt.varies {
				t.Fatalf("%+v, ratio %+v", c.Varies, x)
			}
			if tt.verdict != "" && (x.Verdict != tt.verdict || x.String() != tt.says) {
				t.Errorf("%s %s, want %s %s", x, x.Verdict, tt.says, tt.verdict)
			}
			codes := judgetest.Codes(c.Warnings)
			if got := slices.Contains(codes, analysis.Varying); got != tt.varies {
				t.Errorf("warnings %v", codes)
			}
		})
	}
}

func TestVariationIsFound(t *testing.T) {
	r := fitful(t, 1, 0.02, 2.2, 0.3, 0.05)
	c := judgetest.Find(t, r, mode.Bridge, "bulk")
	if got := judgetest.Codes(c.Warnings); !slices.Equal(got, []string{analysis.Varying}) {
		t.Errorf("warnings %v", got)
	}
	want := analysis.Finding{Code: analysis.Varying, What: "throughput",
		Prices: []analysis.Price{{Unit: "bit/s", Low: 0.02e9, High: 2.2e9, N: 12}},
		Values: map[string]float64{analysis.WindowLength: 1, workload.Retransmits: 7,
			workload.Resent: 0.02, analysis.RTO: 0.204}}
	if got := judgetest.Found(t, c.Warnings, analysis.Varying); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	open := fitful(t, 1, 4, 80, 8, 60)
	if len(open.Found) == 0 || open.Found[0].Code != comparison.Varies ||
		slices.ContainsFunc(open.Found, func(f analysis.Finding) bool {
			return f.Code == analysis.Unclear
		}) {
		t.Errorf("a longer run does not help, but it finds %+v", open.Found)
	}
}

// A latency has a price. If it varies, the price is the range of what the mode adds.
func TestVaryingLatency(t *testing.T) {
	run := judgetest.New(t, judgetest.Trio(mode.Bridge, "rr")...)
	run.File.Header.Plan.Same = 0.03
	r := comparison.Judge(run.Rounds(12, func(round, cell int) float64 {
		if cell == 2 {
			return []float64{40, 400, 60, 250}[round%4]
		}
		return 20
	}).File)
	c := judgetest.Find(t, r, mode.Bridge, "rr")
	p := c.Metrics[workload.LatencyP50].Price
	if p == nil || !p.Varies || p.Verdict != stats.Costs || p.String() != "+20–380" ||
		p.Amount() != "20–380 µs" {
		t.Errorf("%+v: %s", p, p)
	}
}

// Queues drain between short slices, so that only windows show what a lasting transfer does.
func TestWindowsVary(t *testing.T) {
	run := newSlicedRun(t, four("bulk")...).epochs(12, 30, 30, 20, 30)
	shares := []float64{0, 0.1, 0.01, 0.3}
	for i, v := range run.File.Visits {
		if v.Cell == 2 {
			run.File.Visits[i].Server.Received = int64(
				shares[v.Round%len(shares)] * float64(v.Server.Received))
			run.File.Visits[i].Client.TCP.Resent = 1
		}
	}
	r := comparison.Judge(run.File)
	c := judgetest.Find(t, r, mode.Bridge, "bulk")
	x := c.Metrics[workload.Throughput].Ratio
	if c.Varies == nil || c.Varies.Sliced || c.Varies.N != 12 || !x.Varies || x.Low != 0 || c.Varies.Low != 0 || x.High > 0.3 ||
		x.Verdict != stats.Worse {
		t.Errorf("%+v, ratio %+v", c.Varies, x)
	}
	if codes := judgetest.Codes(c.Warnings); len(codes) != 1 || codes[0] != "varies" {
		t.Errorf("warnings %v", codes)
	}
	for _, s := range live(run.Run).Standings() {
		if want := judgetest.Find(t, r, s.Cell.Mode, "bulk").Metrics[workload.Throughput].Ratio; s.Ratio != *want {
			t.Errorf("%s stands at %+v, reported is %+v", s.Label, s.Ratio, want)
		}
	}
	if x := judgetest.Find(t, r, mode.Native, "bulk").Metrics[workload.Throughput].Ratio; x.Varies {
		t.Errorf("native: %+v", x)
	}
}
