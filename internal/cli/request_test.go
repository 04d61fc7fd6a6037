package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestLoadsOverASlowWire(t *testing.T) {
	f := traffic{window: 250 * time.Millisecond, loads: loadsOf(t)}
	for _, tt := range []struct {
		delay                        float64
		bulkWarmup, rrWarmup, window float64
	}{
		{0, 0.1, 0.05, 0.25},
		{0.001, 0.14, 0.054, 0.25},
		{0.1, 4.1, 0.45, 2},
	} {
		loads, err := f.loadsOver(sample.Wire{Delay: tt.delay}, nil)
		if err != nil || len(loads) != 2 {
			t.Fatal(loads, err)
		}
		near := func(a, b float64) bool { return a > b-1e-9 && a < b+1e-9 }
		if !near(loads[0].Warmup, tt.bulkWarmup) || !near(loads[1].Warmup, tt.rrWarmup) ||
			!near(loads[0].Window, tt.window) || !near(loads[1].Window, tt.window) {
			t.Errorf("delay %g: %+v", tt.delay, loads)
		}
	}
}

func TestRemedies(t *testing.T) {
	out := []mode.Target{mode.ToOutside}
	bulk := []sample.Load{{Kind: "bulk"}}
	for _, x := range []struct {
		name string
		plan.Request
		modes  []mode.Name
		beside []sample.Variant
	}{
		{"rootless Docker", plan.Request{To: out, Loads: bulk,
			Modes: []mode.Name{mode.Bridge, mode.RootlessPublish}},
			[]mode.Name{mode.Bridge, mode.RootlessPublish},
			[]sample.Variant{{Mode: mode.RootlessPublish, Tune: "mtu=65520"}}},
		{"Podman", plan.Request{To: out, Loads: bulk, Modes: []mode.Name{mode.Slirp4netns}},
			[]mode.Name{mode.Slirp4netns, mode.Pasta}, []sample.Variant{{Mode: mode.Pasta}}},
		{"the way in", plan.Request{Loads: bulk, Modes: []mode.Name{mode.RootlessPublish}},
			[]mode.Name{mode.RootlessPublish}, nil},
		{"no upload", plan.Request{To: out, Loads: []sample.Load{{Kind: "rr"}},
			Modes: []mode.Name{mode.RootlessPublish}}, []mode.Name{mode.RootlessPublish}, nil},
		{"own tunes", plan.Request{To: out, Loads: bulk, Tunes: []mode.Tunes{"mtu=9000"},
			Modes: []mode.Name{mode.RootlessPublish}}, []mode.Name{mode.RootlessPublish}, nil},
		{"relays without a remedy", plan.Request{To: out, Loads: bulk,
			Modes: []mode.Name{mode.Pasta}}, []mode.Name{mode.Pasta}, nil},
	} {
		x.On = []string{sample.Lab}
		remedy(&x.Request)
		var beside []sample.Variant
		for _, l := range x.Remedies {
			beside = append(beside, l.Variant)
		}
		if !slices.Equal(x.Modes, x.modes) || !slices.Equal(beside, x.beside) {
			t.Errorf("%s: %v with %v beside, want %v with %v", x.name, x.Modes, beside, x.modes,
				x.beside)
		}
	}
}
