package trend_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// session is the standard deviation between epochs.
func sliced(t *testing.T, session float64, epochs int) *sample.File {
	rng := rand.New(rand.NewPCG(7, uint64(epochs)))
	r := judgetest.New(t, append(judgetest.Trio(mode.Bridge, workload.Bulk),
		judgetest.HostCell(mode.Native, workload.Bulk))...)
	p := &r.File.Header.Plan
	p.Same, p.CPUs = 0.03, sample.CPUs{Client: []int{0}, Server: []int{1}}
	for i := range p.Loads {
		p.Loads[i].Slice = 0.004
	}
	r.File.Header.Environment = sample.Environment{Kernel: "6.1", CPUModel: "EPYC"}
	return r.Rounds(epochs, judgetest.Steady(40, 40, 40, 40), func(v *sample.Visit) {
		off := session * rng.NormFloat64()
		v.Slices = &sample.Slices{}
		for k := range 40 {
			v.Slices.Slots = append(v.Slices.Slots, 4*k+v.Cell)
			v.Slices.Rates = append(v.Slices.Rates, 5e9*math.Exp(off+0.02*rng.NormFloat64()))
		}
	}).File
}

func width(t *testing.T, f *sample.File) float64 {
	t.Helper()
	x := judgetest.Find(t, analysis.Judge(f), mode.Bridge,
		workload.Bulk).Metrics[workload.Throughput].Ratio
	if x == nil {
		t.Fatal("no ratio")
	}
	return x.HalfWidth()
}

func TestPriors(t *testing.T) {
	var runs []trend.Summary
	for range 5 {
		f := sliced(t, 0.002, 10)
		s := trend.Summarize(f.Header, analysis.Judge(f), "1.0")
		if len(s.Spreads) != 1 || s.Spreads[0].Metric != workload.Throughput ||
			!(s.Spreads[0].SD < 0.008) {
			t.Fatalf("spreads %+v", s.Spreads)
		}
		runs = append(runs, s)
	}
	now := sliced(t, 0.002, 2)
	h := now.Header
	got := trend.Priors(runs, h.Plan, h.Environment)
	want := sample.Prior{From: "host", Load: workload.Bulk, On: "lab", Metric: workload.Throughput,
		Variance: got[0].Variance, Freedom: 12}
	if len(got) != 1 || got[0] != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	before := width(t, now)
	now.Header.Plan.Priors = got
	if after := width(t, now); after > 0.8*before {
		t.Errorf("±%.4f with what earlier runs say, ±%.4f without", after, before)
	}
	if one := trend.Priors(runs[:1], h.Plan, h.Environment); len(one) != 1 || one[0].Freedom != 6 {
		t.Errorf("one run: %+v", one)
	}
	for name, change := range map[string]func(*sample.Plan, *sample.Environment){
		"kernel":    func(_ *sample.Plan, e *sample.Environment) { e.Kernel = "6.2" },
		"CPU":       func(_ *sample.Plan, e *sample.Environment) { e.CPUModel = "Xeon" },
		"placement": func(p *sample.Plan, _ *sample.Environment) { p.CPUs.Server = []int{0} },
		"slice": func(p *sample.Plan, _ *sample.Environment) {
			p.Loads = []sample.Load{{Kind: workload.Bulk, Streams: 1, Slice: 0.016}}
		},
		"load": func(p *sample.Plan, _ *sample.Environment) {
			p.Loads = []sample.Load{{Kind: workload.Bulk, Streams: 4, Slice: 0.004}}
		},
		"windows": func(p *sample.Plan, _ *sample.Environment) {
			p.Loads = []sample.Load{{Kind: workload.Bulk, Streams: 1}}
		},
	} {
		p, e := h.Plan, h.Environment
		change(&p, &e)
		if got := trend.Priors(runs, p, e); len(got) != 0 {
			t.Errorf("with another %s: %+v", name, got)
		}
	}
}

// Repetitions of a plan that agree make the assumed difference between runs smaller, and others
// larger.
func TestRepeats(t *testing.T) {
	f := sliced(t, 0.002, 3)
	p, env := f.Header.Plan, f.Header.Environment
	env.Congestion = "bbr"
	runs := func(ratios ...float64) (out []trend.Summary) {
		for _, x := range ratios {
			s := trend.Summarize(f.Header, analysis.Judge(f), "1.0")
			for k := range s.Rows {
				s.Rows[k].Median = x
			}
			out = append(out, s)
		}
		return out
	}
	repeats := func(ratios ...float64) (sd, freedom float64) {
		got := trend.Repeats(runs(ratios...), p, env)
		if len(got) != 1 || got[0].Metric != workload.Throughput || got[0].Load != workload.Bulk {
			t.Fatalf("%v: %+v", ratios, got)
		}
		return math.Sqrt(got[0].Variance), got[0].Freedom
	}
	assumed := math.Sqrt(analysis.Repeated.Variance)
	if sd, freedom := repeats(0.5, 0.5, 0.5, 0.5); sd > 0.8*assumed || freedom != 9 {
		t.Errorf("four equal runs: %g, %g degrees of freedom", sd, freedom)
	}
	if sd, _ := repeats(0.4, 0.47, 0.7); sd < 1.2*assumed {
		t.Errorf("three that differ: %g", sd)
	}
	for name, got := range map[string][]sample.Prior{
		"no run":      trend.Repeats(nil, p, env),
		"a single":    trend.Repeats(runs(0.5), p, env),
		"no pacing":   trend.Repeats(runs(0.5, 0.6), p, f.Header.Environment),
		"other cells": trend.Repeats(runs(0.5, 0.6), sample.Plan{Cells: p.Cells[:2]}, env),
	} {
		if len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
