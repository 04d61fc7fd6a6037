package analysis_test

import (
	"math"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/ladder"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// The ends spend 1 ns on a byte and 20 µs on a round trip, times less[cell]; the whole machine
// spends factors[cell] times as much.
func cpuRun(t *testing.T, epochs int, less, factors []float64) *slicedRun {
	r := newSlicedRun(t, append(four("bulk"), four("rr")...)...)
	r.epochs(epochs, 30, 30, 28, 30, 20, 20, 22, 20)
	for i := range r.File.Visits {
		v := &r.File.Visits[i]
		cost, of := 1e-9, less[v.Cell%4]
		if v.Cell >= 4 {
			cost = 20e-6
		}
		v.Slices.CPU = nil
		for range v.Slices.Slots {
			v.Slices.CPU = append(v.Slices.CPU, cost*of*math.Exp(0.05*r.rng.NormFloat64()))
		}
		v.Elapsed, v.Client.CPU, v.Server.CPU = 0.1, 0.04, 0.02
		busy := 0.06*factors[v.Cell%4] + 0.001*r.rng.NormFloat64()
		v.Machine = []sample.CPU{{System: busy, Idle: 0.1 - busy/2}, {Idle: 0.1 - busy/2}}
	}
	return r
}

func TestCPUBySlices(t *testing.T) {
	one := []float64{1, 1, 1, 1}
	for _, tt := range []struct {
		name                   string
		less, factors          []float64
		bridge, native         float64
		bridgeSays, nativeSays stats.Verdict
		width                  float64
	}{
		{"the-ends-spend-more", []float64{1, 1, 1.2, 1}, one, 1.2, 1, stats.Worse, stats.Same,
			0.05},
		{"somebody-else-does", one, []float64{1.1, 1.1, 2.2, 1.1}, 2, 1, stats.Worse, stats.Same,
			0.05},
		{"the-ends-do-half-and-a-proxy-the-rest", []float64{1, 1, 0.5, 1}, []float64{1, 1, 2, 1}, 1,
			1, stats.Same, stats.Same, 0.05},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := analysis.Judge(cpuRun(t, 20, tt.less, tt.factors).File)
			for load, metric := range map[string]string{"bulk": workload.CPUPerByte,
				"rr": workload.CPUPerTrip} {
				x, y := ratioIn(t, got, mode.Bridge, load, metric),
					ratioIn(t, got, mode.Native, load, metric)
				if x.Low > tt.bridge || x.High < tt.bridge || x.HalfWidth() > tt.width*tt.bridge ||
					x.Verdict != tt.bridgeSays || x.Epochs != 20 {
					t.Errorf("%s: bridge %+v, want %g %s", load, x, tt.bridge, tt.bridgeSays)
				}
				if y.Low > tt.native || y.High < tt.native || y.Verdict != tt.nativeSays {
					t.Errorf("%s: native %+v", load, y)
				}
			}
			per := ratioIn(t, got, mode.Bridge, "bulk", workload.PerBusyCore)
			if per.Low > 1/tt.bridge || per.High < 1/tt.bridge || per.Epochs != 20 {
				t.Errorf("a busy core: %+v", per)
			}
			abs := judgetest.Find(t, got, mode.Bridge, "rr").Metrics[workload.CPUPerTrip].Median
			if want := 20e-6 * tt.less[2] * tt.factors[2]; math.Abs(abs/want-1) > 0.05 {
				t.Errorf("a trip takes %g s of CPU time, want %g", abs, want)
			}
		})
	}
}

func TestCPUIntervalHasTheFactorsError(t *testing.T) {
	one := []float64{1, 1, 1, 1}
	quiet := ratioIn(t, analysis.Judge(cpuRun(t, 8, one, one).File), mode.Bridge, "rr",
		workload.CPUPerTrip)
	r := cpuRun(t, 8, one, one)
	for i := range r.File.Visits {
		r.File.Visits[i].Machine[0].Idle += 0.015 * r.rng.NormFloat64()
	}
	if noisy := ratioIn(t, analysis.Judge(r.File), mode.Bridge, "rr", workload.CPUPerTrip); noisy.HalfWidth() < 3*quiet.HalfWidth() {
		t.Errorf("±%.3f with clocks that are off by a quarter, ±%.3f with good ones",
			noisy.HalfWidth(), quiet.HalfWidth())
	}
}

// All rounds' figures have the run's factor in them, so their variation does not show its error.
func TestCPUFiguresHaveTheFactorsError(t *testing.T) {
	one := []float64{1, 1, 1, 1}
	quiet, noisy := cpuRun(t, 8, one, one), cpuRun(t, 8, one, one)
	for i := range noisy.File.Visits {
		noisy.File.Visits[i].Machine[0].Idle += 0.015 * noisy.rng.NormFloat64()
	}
	shown := func(f *sample.File) float64 {
		m := judgetest.Find(t, analysis.Judge(f), mode.Bridge, "rr").Metrics[workload.CPUPerTrip]
		return (m.High - m.Low) / m.Median
	}
	bounds := func(f *sample.File) float64 {
		b := analysis.Open(f).ValueBounds(6, workload.CPUPerTrip)
		return (b.High - b.Low) / b.Median
	}
	predicted := func(f *sample.File) float64 {
		got, err := predict.Judge(f, predict.Workload{Queries: 1, Bytes: 10_000, QPS: 1000})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(got.Rows, func(r predict.Row) bool {
			return r.Mode == string(mode.Bridge)
		})
		return (got.Rows[i].CPU.High - got.Rows[i].CPU.Low) / got.Rows[i].CPU.Median
	}
	shifted := func(now *sample.File) float64 {
		s := analysis.Runs{Old: analysis.Open(quiet.File), New: analysis.Open(now)}.Value(
			analysis.Match{Old: 6, New: 6}, workload.CPUPerTrip)
		if s.SureLow > s.Low || s.SureHigh < s.High {
			t.Errorf("%+v", s)
		}
		return s.High - s.Low
	}
	for name, width := range map[string]func(*sample.File) float64{"a report": shown,
		"a gate": bounds, "a prediction": predicted, "a difference": shifted} {
		if a, b := width(quiet.File), width(noisy.File); b < 0.1 || b < 2*a {
			t.Errorf("of %s: %.3f with clocks that are off by a quarter, %.3f with good ones",
				name, b, a)
		}
	}
	for i := range noisy.File.Visits {
		if v := &noisy.File.Visits[i]; v.Round > 1 {
			v.Elapsed = 0
		}
	}
	if b := analysis.Open(noisy.File).ValueBounds(6, workload.CPUPerTrip); b.Known {
		t.Errorf("by two windows: %+v", b)
	}
}

func TestCPUWithoutWindows(t *testing.T) {
	one := []float64{1, 1, 1, 1}
	for name, change := range map[string]func(*sample.Visit){
		"no-meters":           func(v *sample.Visit) { v.Elapsed = 0 },
		"no-cpu-in-slices":    func(v *sample.Visit) { v.Slices.CPU = nil },
		"ends-without-clocks": func(v *sample.Visit) { v.Client.CPU, v.Server.CPU = 0, 0 },
		"two-windows": func(v *sample.Visit) {
			if v.Round > 1 {
				v.Elapsed = 0
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := cpuRun(t, 8, one, one)
			for i := range r.File.Visits {
				change(&r.File.Visits[i])
			}
			m, ok := judgetest.Find(t, analysis.Judge(r.File), mode.Bridge,
				"rr").Metrics[workload.CPUPerTrip]
			if ok && m.Ratio != nil && m.Ratio.Epochs != 0 {
				t.Errorf("%+v", m.Ratio)
			}
			if name != "no-cpu-in-slices" {
				return
			}
			got, err := predict.Judge(r.File, predict.Workload{Queries: 1, Bytes: 1, QPS: 1000})
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range got.Rows {
				if p, ok := row.Over[predict.CPU]; !row.Baseline &&
					(!ok || p.Epochs != 0 || p.N != 8) {
					t.Errorf("%s: %+v", row.Mode, p)
				}
			}
		})
	}
}

// All rounds share the factor of the run. If its error is not known, they are not compared.
func TestCPUByRoundsIsOfWindows(t *testing.T) {
	one := []float64{1, 1, 1, 1}
	r := cpuRun(t, 8, one, one)
	for i := range r.File.Visits {
		v := &r.File.Visits[i]
		for k := range v.Slices.CPU {
			v.Slices.CPU[k] = 20e-6
		}
		if v.Cell%4 == 2 && v.Round > 1 {
			v.Elapsed = 0
		}
	}
	if x := judgetest.Find(t, analysis.Judge(r.File), mode.Bridge, "rr").Metrics[workload.CPUPerTrip].Ratio; x == nil || x.N != 2 || x.Low == x.High {
		t.Errorf("%+v", x)
	}
}

func TestLadderPricesCPUBySlices(t *testing.T) {
	r := cpuRun(t, 20, []float64{1, 1, 1.5, 1}, []float64{1, 1, 1, 1})
	r.File.Header.Plan.Study = sample.StudyLadder
	for _, s := range ladder.Judge(r.File).Steps {
		p := s.Prices[workload.CPUPerTrip]
		if s.Mode == mode.Bridge && (p.Epochs != 20 || p.Low > 10e-6 || p.High < 10e-6 ||
			p.High-p.Low > 2e-6 || p.Verdict != stats.Costs) {
			t.Errorf("%+v", p)
		}
	}
	got, err := predict.Judge(r.File, predict.Workload{Queries: 1, Bytes: 1, QPS: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range got.Rows {
		if p := row.Over[predict.CPU]; row.Mode == string(mode.Bridge) &&
			(p.Epochs != 20 || p.Low > 0.01 || p.High < 0.01 || p.High-p.Low > 0.002) {
			t.Errorf("1000 queries per second: %+v", p)
		}
	}
}
