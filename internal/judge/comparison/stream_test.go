package comparison

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// Each cell has a delay in µs and a response time in ms; each visit has a thousand tokens in a
// second.
func streamed(t *testing.T, rounds int, delay, response []float64,
	change ...func(*sample.Visit)) *judgetest.Run {
	t.Helper()
	r := judgetest.New(t, judgetest.Trio(mode.Bridge, "stream")...)
	r.File.Header.Plan.Loads = []sample.Load{
		{Kind: "stream", Streams: 1, Options: sample.StreamOptions{Tokens: 6, Pace: 50},
			Warmup: 0.1, Window: 1}}
	encode := func(ns ...int64) *sample.EncodedHisto {
		h := sample.NewHistogram()
		for _, x := range ns {
			if err := h.RecordValue(x); err != nil {
				t.Fatal(err)
			}
		}
		e, err := sample.Encode(h)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	us := func(x float64) int64 { return int64(x * float64(time.Microsecond)) }
	for round := range rounds {
		for c := range r.File.Header.Plan.Cells {
			off := float64(round%3-1) / 100
			r.Visit(round, c, 0, append([]func(*sample.Visit){func(v *sample.Visit) {
				v.Latency = encode(us(delay[c]*(1+off)), us(delay[c]*(1+off)), us(10*delay[c]))
				v.Times = map[string]*sample.EncodedHisto{
					"gap":         encode(us(20_000), us(20_000), us(40_000)),
					"first_token": encode(us(90)),
					"overrun":     encode(us(1000 * (response[c] - 120 + 0.5 + off))),
					"late":        encode(us(30), us(30), us(300)),
					"transit":     encode(us(70)),
					"wait":        encode(us(4), us(4), us(5)),
				}
				v.Client.Counts = map[string]int64{"tokens": 1000, "glued": 250}
				v.Client.Sent, v.Server.Received = 0, 0
				v.Proxy = &sample.ProxyUse{Name: "docker-proxy", CPU: 0.4}
			}}, change...)...)
		}
	}
	r.File.End.Rounds = rounds
	return r
}

func TestTokens(t *testing.T) {
	got := Judge(streamed(t, 6, []float64{100, 100, 150}, []float64{120, 120, 120}).File)
	c := judgetest.Find(t, got, mode.Bridge, "stream")
	for name, want := range map[string]float64{
		workload.LatencyP50:    150e-6,
		workload.LatencyMax:    1500e-6,
		workload.FirstTokenP50: 90e-6,
		workload.FirstTokenP99: 90e-6,
		workload.GapP50:        20e-3,
		workload.GapP99:        40e-3,
		workload.GapMax:        40e-3,
		workload.ResponseTime:  120.5e-3,
		workload.Overrun:       0.5e-3,
		workload.Glued:         0.25,
		workload.TokenRate:     1000,
		workload.CPUPerToken:   (0.4 + 0.2 + 0.4) / 1000,
		workload.TransitP50:    70e-6,
		workload.LateP99:       300e-6,
		workload.LateMax:       300e-6,
		workload.WaitMax:       5e-6,
	} {
		m, ok := c.Metrics[name]
		if !ok || !judgetest.Near(m.Median, want) ||
			m.Unit != workload.MetricOf(name, sample.Load{}).Unit || len(m.Rounds) != 6 {
			t.Errorf("%s: %+v, want %g", name, m, want)
		}
		if workload.IsMedian(name) != (m.Merged == nil) &&
			workload.MetricOf(name, sample.Load{}).Times != "" {
			t.Errorf("%s: merged %v", name, m.Merged)
		}
		if workload.MetricOf(name, sample.Load{}).Times != "" && m.Merged != nil &&
			!judgetest.Near(*m.Merged, want) {
			t.Errorf("%s: merged %v, want %g", name, m.Merged, want)
		}
	}
	x := c.Metrics[workload.LatencyP50].Ratio
	if x == nil || !judgetest.Near(x.Median, 1.5) || x.Verdict != stats.Worse {
		t.Errorf("ratio %+v", x)
	}
	wantFindings(t, got, "keep bridge", "tokens-faster bridge: host", "tokens-in-time",
		"own-delays",
		"witnessed")
	if own := got.Found[3].Values; !judgetest.Near(own[workload.LateMax], 300e-6) ||
		!judgetest.Near(own[workload.WaitP99], 5e-6) || own[BusiestCPU] <= 0 {
		t.Errorf("delays of the load itself %v", own)
	}
	if workload.MetricOf(workload.ResponseTime, sample.Load{}).Higher ||
		!workload.MetricOf(workload.TokenRate, sample.Load{}).Higher ||
		analysis.Rate(sample.Load{Kind: "stream"}) != workload.TokenRate {
		t.Error("which way is good?")
	}
}

func TestStreamFinding(t *testing.T) {
	for _, tt := range []struct {
		name     string
		response float64 // of the bridge, ms; the host's is 120
		stall    time.Duration
		price    float64 // ms
		want     []string
	}{
		{"nothing", 120, 40 * time.Millisecond, 0,
			[]string{"tokens-faster bridge: host", "tokens-in-time"}},
		{"little", 125, 40 * time.Millisecond, 5,
			[]string{"tokens-faster bridge: host", "tokens-in-time"}},
		{"as-published", 280.6, 250 * time.Millisecond, 160.7,
			[]string{"tokens-slower bridge: host", "tokens-late host, bridge"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stall := func(v *sample.Visit) {
				h := sample.NewHistogram()
				if err := errors.Join(h.RecordValue(int64(20*time.Millisecond)), h.RecordValue(int64(tt.stall))); err != nil {
					t.Fatal(err)
				}
				e, err := sample.Encode(h)
				if err != nil {
					t.Fatal(err)
				}
				v.Times["gap"] = e
			}
			r := Judge(streamed(t, 6, []float64{100, 100, 100}, []float64{120, 120, tt.response},
				stall).File)
			wantFindings(t, r, append(append([]string{"keep bridge"}, tt.want...), "own-delays",
				"witnessed")...)
			if p := r.Found[1].Prices[0]; math.Abs(1e3*p.Median-tt.price) > 0.1 {
				t.Errorf("%+v", p)
			}
		})
	}
}

// Two rounds of a noisy machine are too few to say that nothing is slower.
func TestStreamFindingTakesFiveRounds(t *testing.T) {
	for rounds, want := range map[int]string{2: TokensUnclear, 4: TokensUnclear, 5: TokensFaster} {
		r := Judge(streamed(t, rounds, []float64{100, 100, 100}, []float64{120, 120, 125}).File)
		if got := r.Found[1]; got.Code != want || len(got.Prices) != 1 {
			t.Errorf("after %d rounds %+v, want %s", rounds, got, want)
		}
	}
}

func TestStreamWarnings(t *testing.T) {
	with := func(name string, ns ...int64) func(*sample.Visit) {
		return func(v *sample.Visit) {
			h := sample.NewHistogram()
			for _, x := range ns {
				_ = h.RecordValue(x)
			}
			v.Times[name], _ = sample.Encode(h)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*sample.Visit)
		code   string
		n      int
		late   float64 // s
	}{
		{"server", with("late", 5e6), workload.Behind, 0, 0.005},
		{"client", with("wait", 5e6), workload.SlowReader, 0, 0.005},
		{"overdue", func(v *sample.Visit) {
			v.Client.Counts["overdue"] = 2
		}, workload.Overdue, 12, 0},
		{"blocked", func(v *sample.Visit) {
			v.Server.Counts = map[string]int64{"blocked": 3}
		}, workload.Blocked, 18, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Judge(streamed(t, 6, []float64{100, 100, 100}, []float64{120, 120, 120},
				tt.change).File)
			f := judgetest.Found(t, judgetest.Find(t, got, mode.Bridge, "stream").Warnings, tt.code)
			if f.N != tt.n || !judgetest.Near(f.Values[tt.code], tt.late) {
				t.Errorf("%+v, want %d, %g s", f, tt.n, tt.late)
			}
		})
	}
	quiet := judgetest.Find(t, Judge(streamed(
		t, 6, []float64{100, 100, 100}, []float64{120, 120, 120}).File), mode.Bridge,
		"stream").Warnings
	if got := judgetest.Codes(quiet); !slices.Equal(got, []string{analysis.ThinTail}) {
		t.Errorf("warnings of a load that keeps up: %+v", quiet)
	}
}

func TestTokensOfABadRecord(t *testing.T) {
	bad := sample.EncodedHisto("bad")
	got := Judge(streamed(t, 6, []float64{100, 100, 100}, []float64{120, 120, 120},
		func(v *sample.Visit) {
			v.Times = map[string]*sample.EncodedHisto{"gap": &bad, "late": nil}
		}).File)
	c := judgetest.Find(t, got, mode.Bridge, "stream")
	if _, ok := c.Metrics[workload.GapMax]; ok || c.Metrics[workload.TokenRate].Median != 1000 {
		t.Errorf("metrics %+v", c.Metrics)
	}
}
