package analysis_test

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func live(r *judgetest.Run) *analysis.Live { return liveTo(r, analysis.ToBaseline) }

func liveTo(r *judgetest.Run, to analysis.Partners) *analysis.Live {
	l := analysis.NewLive(r.File.Header, to)
	for _, v := range r.File.Visits {
		l.Add(v)
	}
	return l
}

func allKnown(l *analysis.Live) bool { return !slices.Contains(l.Known(), false) }

func TestStandingsAreTheReports(t *testing.T) {
	cells := append(four("bulk"), four("rr")...)
	cells = append(cells, four("crr")...)
	r := newSlicedRun(t, cells...)
	r.File.Header.Plan.Loads = append(r.File.Header.Plan.Loads,
		sample.Load{Kind: "crr", Window: 0.1})
	l := analysis.NewLive(r.File.Header, analysis.ToBaseline)
	for n := range 8 {
		before := len(r.File.Visits)
		r.epochs(1, 30, 30, 26, 30, 20, 20, 25, 20)
		for c := 8; c < 12; c++ {
			r.Visit(n, c, 1, func(v *sample.Visit) {
				v.Client.Trips = int64(20_000 + 100*((n*7+c)%5))
				if c == 10 {
					v.Client.Trips /= 2
				}
			})
		}
		for i := len(r.File.Visits) - 1; i >= before; i-- {
			l.Add(r.File.Visits[i])
			if i%3 == 0 {
				l.Known()
			}
		}
		got, want := l.Standings(), analysis.Judge(r.File)
		if len(got) != 6 {
			t.Fatalf("after %d rounds %d cells have a ratio", n+1, len(got))
		}
		for _, s := range got {
			if x := ratioIn(t, want, s.Cell.Mode, s.Cell.Load, analysis.PrimaryOf(sample.Load{Kind: s.Cell.Load}, s.Cell.Shape)); x != s.Ratio {
				t.Errorf("after %d rounds, %s %s: %+v, the report has %+v", n+1, s.Label,
					s.Cell.Load, s.Ratio, x)
			}
		}
	}
}

func TestKnownBySlices(t *testing.T) {
	r := newSlicedRun(t, four("bulk")...)
	r.File.Header.Plan.Precision = 0.001
	for n, want := range [][]bool{
		{true, false, false, false},
		{true, false, false, false},
		{true, false, true, false},
	} {
		r.epochs(1, 30, 30, 20, 29.2)
		if got := live(r.Run).Known(); !slices.Equal(got, want) {
			t.Errorf("after %d epochs %v, want %v", n+1, got, want)
		}
	}
	r.epochs(30, 30, 30, 20, 30)
	if got := live(r.Run).Known(); slices.Contains(got, false) {
		t.Errorf("after 33 epochs: %v", got)
	}
	r = newSlicedRun(t, four("bulk")...)
	r.File.Header.Plan.Precision = 0.10
	if r.epochs(3, 30, 30, 20, 29); !allKnown(live(r.Run)) {
		t.Errorf("known to within 10 %%: %v", live(r.Run).Known())
	}
}

func TestKnownByRounds(t *testing.T) {
	still, hum, roar := []float64{0, 0, 0}, []float64{0, 0, 0.01}, []float64{0, 0, 0.1}
	for _, tt := range []struct {
		name   string
		load   string
		rounds int
		same   float64
		value  func(round, cell int) float64
		change func(*sample.Visit)
		want   bool
	}{
		{"steady", "bulk", 8, 0, judgetest.Noisy(still, 8, 8, 4), nil, true},
		{"few-rounds", "bulk", 5, 0, judgetest.Noisy(still, 8, 8, 4), nil, false},
		{"within-precision", "bulk", 8, 0, judgetest.Noisy(hum, 8, 8, 4), nil, true},
		{"a-mode-is-noisy", "bulk", 8, 0, judgetest.Noisy(roar, 8, 8, 4), nil, false},
		{"but-its-verdict-is-certain", "bulk", 8, 0.03, judgetest.Noisy(roar, 8, 8, 4), nil, true},
		{"a-mode-is-noisy-and-alike", "bulk", 8, 0.03, judgetest.Noisy(roar, 8, 8, 7.5), nil,
			false},
		{"latency-is-noisy", "rr", 8, 0, judgetest.Noisy(roar, 50, 50, 90), nil, false},
		{"the-control-is-noisy", "bulk", 8, 0, judgetest.Noisy([]float64{0, 0.1, 0}, 8, 8, 4), nil,
			false},
		{"a-mode-that-always-fails-does-not-hold-up", "bulk", 8, 0, judgetest.Noisy(roar, 8, 8, 4),
			func(v *sample.Visit) { v.Witness.OK = v.Cell != 2 }, true},
		{"a-ratio-of-one-round-is-not-known", "bulk", 8, 0, judgetest.Noisy(still, 8, 8, 4),
			func(v *sample.Visit) {
				if v.Cell == 2 && v.Round != 7 {
					v.Failure, v.Starved = "the machine was too busy", true
				}
			}, false},
		{"what-was-starved-once-is-not-broken", "bulk", 1, 0, judgetest.Noisy(still, 8, 8, 4),
			func(v *sample.Visit) {
				if v.Cell == 2 {
					v.Failure, v.Starved = "the machine was too busy", true
				}
			}, false},
		{"other-metrics-may-be-noisy", "bulk", 8, 0, judgetest.Steady(8, 8, 4),
			func(v *sample.Visit) { v.Client.TCP.RTT = float64(1 + v.Round) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := judgetest.New(t, judgetest.Trio(mode.Bridge, tt.load)...)
			r.File.Header.Plan.Same = tt.same
			change := []func(*sample.Visit){}
			if tt.change != nil {
				change = append(change, tt.change)
			}
			l := live(r.Rounds(tt.rounds, tt.value, change...))
			if got := allKnown(l); got != tt.want {
				t.Errorf("known: %v", l.Known())
			}
		})
	}
}

func TestLiveLadder(t *testing.T) {
	cells := append(judgetest.Trio(mode.Bridge, "bulk"),
		judgetest.HostCell(mode.PublishNAT, "bulk"))
	r := newSlicedRun(t, cells...)
	r.File.Header.Plan.Study = sample.StudyLadder
	r.epochs(12, 30, 30, 20, 20)
	of := func(l *analysis.Live) string {
		for _, s := range l.Standings() {
			if s.Cell.Mode == mode.PublishNAT {
				return s.Ratio.To + " " + string(s.Ratio.Verdict)
			}
		}
		return "nothing"
	}
	l := liveTo(r.Run, ladder.Partners)
	if got := of(l); got != "bridge same" {
		t.Errorf("over %s", got)
	}
	for n := range 3 {
		l.Add(sample.Visit{Turn: sample.Turn{Round: 12 + n, Cell: 2},
			Outcome: sample.Outcome{Failure: "gone"}})
	}
	if got := of(l); got != "host worse" {
		t.Errorf("after the rung below broke: over %s", got)
	}
	if known := l.Known(); !known[2] {
		t.Errorf("what broke holds the run up: %v", known)
	}
}

func TestLiveOfNothing(t *testing.T) {
	l := live(newSlicedRun(t, four("rr")...).Run)
	if got := l.Known(); !slices.Equal(got, []bool{true, false, false, false}) ||
		len(l.Standings()) != 0 {
		t.Errorf("known %v, %d stand", got, len(l.Standings()))
	}
	l.Add(sample.Visit{Turn: sample.Turn{Cell: 7}})
}

// The cost of judging must be negligible: here for a round of a minute's run with many earlier
// rounds.
func BenchmarkLive(b *testing.B) {
	t := &testing.T{}
	var cells []sample.Cell
	for _, load := range []string{"bulk", "rr"} {
		cells = append(cells, four(load)...)
		for _, m := range []mode.Name{mode.BridgeDefault, mode.Routed, mode.PublishNAT,
			mode.Shared} {
			cells = append(cells, judgetest.HostCell(m, load))
		}
	}
	r := newSlicedRun(t, cells...)
	xs := make([]float64, len(cells))
	for i := range xs {
		xs[i] = 20
	}
	l := live(r.epochs(20, xs...).Run)
	last := r.File.Visits[len(r.File.Visits)-len(cells):]
	for b.Loop() {
		for _, v := range last {
			l.Add(v)
		}
		l.Standings()
	}
}
