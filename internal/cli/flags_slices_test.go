package cli

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestWhole(t *testing.T) {
	lab := []string{sample.Lab}
	none := sample.Wire{}
	for _, tt := range []struct {
		name  string
		load  sample.Load
		slice float64
		wire  sample.Wire
		on    []string
		why   string // "": it is sliced
	}{
		{"bulk", sample.Load{Kind: "bulk", Streams: 1}, 0.004, none, lab, ""},
		{"both-ways", sample.Load{Kind: "bulk", Streams: 8,
			Options: sample.BulkOptions{Bidir: true}}, 1, none, lab, ""},
		{"rr", sample.Load{Kind: "rr", Streams: 16,
			Options: sample.RROptions{Messages: sample.Messages{Request: 1, Reply: 1}}}, 0.001,
			none, lab, ""},
		{"udp-rr", sample.Load{Kind: "udp-rr", Options: sample.Messages{Request: 1, Reply: 1000}},
			0.004, none, []string{sample.Lab, "docker"}, ""},
		{"query", sample.Load{Kind: "query", Options: sample.QueryOptions{
			Messages: sample.Messages{Request: 100, Reply: 1024}, Queries: 20}}, 0.004, none, lab,
			""},
		{"jumbo-frames", sample.Load{Kind: "rr"}, 0.004, sample.Wire{MTU: 9000}, lab, ""},

		{"udp", sample.Load{Kind: "udp", Streams: 1}, 0.004, none, lab, "searches for"},
		{"crr", sample.Load{Kind: "crr"}, 0.004, none, lab, "outlast a slice"},
		{"stream", sample.Load{Kind: "stream"}, 0.004, none, lab, "at a fixed pace"},
		{"exec", sample.Load{Kind: "exec"}, 0.004, none, lab, "not toll's own"},
		{"transfer", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: 1}}, 0.004, none,
			lab, "--bytes"},
		{"open-loop", sample.Load{Kind: "rr", Options: sample.RROptions{Rate: 100}}, 0.004, none,
			lab, "--rate"},
		{"under-load", sample.Load{Kind: "rr", Options: sample.RROptions{Beside: true}}, 0.004,
			none, lab, "--under-load"},
		{"streams", sample.Load{Kind: "bulk", Streams: 17}, 0.004, none, lab, "17 threads"},
		{"streams-both-ways", sample.Load{Kind: "bulk", Streams: 9,
			Options: sample.BulkOptions{Bidir: true}}, 0.004, none, lab, "18 threads"},
		{"rate", sample.Load{Kind: "bulk"}, 0.004, sample.Wire{Rate: 1e9}, lab, "--wire"},
		{"delay", sample.Load{Kind: "bulk"}, 0.004, sample.Wire{Delay: 50e-6}, lab, "--wire"},
		{"swarm", sample.Load{Kind: "bulk"}, 0.004, none, []string{sample.Lab, "swarm"},
			"--on swarm"},
		{"trips-on-swarm", sample.Load{Kind: "rr"}, 0.004, none, []string{sample.Lab, "swarm"}, ""},
		{"long-pages", sample.Load{Kind: "query", Options: sample.QueryOptions{Queries: 100}},
			0.004, none, lab, "--slice 16ms"},
		{"long-replies", sample.Load{Kind: "rr",
			Options: sample.RROptions{Messages: sample.Messages{Request: 1, Reply: 4 << 20}}},
			0.004, none, lab, "--slice 9ms"},
		{"long-writes", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Write: 64 << 20}},
			0.1, none, lab, "--slice 135ms"},
		{"longer-slices", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Write: 64 << 20}},
			0.135, none, lab, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := whole(tt.load, tt.slice, tt.wire, tt.on)
			if (got == "") != (tt.why == "") || !strings.Contains(got, tt.why) {
				t.Errorf("%q, want %q", got, tt.why)
			}
		})
	}
}

func TestTurnsSlice(t *testing.T) {
	for _, tt := range []struct {
		load sample.Load
		cpus int
		want float64
	}{
		{sample.Load{Kind: "bulk", Streams: 1}, 2, 0},
		{sample.Load{Kind: "bulk", Streams: 2}, 2, 0.006},
		{sample.Load{Kind: "bulk", Streams: 4}, 2, 0.012},
		{sample.Load{Kind: "bulk", Streams: 4}, 8, 0},
		{sample.Load{Kind: "bulk", Streams: 1, Options: sample.BulkOptions{Bidir: true}}, 2, 0.012},
		{sample.Load{Kind: "rr", Streams: 16}, 2, 0}, // they wait for each other, not for a CPU
	} {
		if got := turnsSlice(tt.load, tt.cpus); got != tt.want {
			t.Errorf("%+v on %d CPUs: %g s, want %g", tt.load, tt.cpus, got, tt.want)
		}
	}
	for _, asked := range []bool{false, true} {
		l := sample.Load{Kind: "bulk", Streams: load.ManyThreads}
		want := turnsSlice(l, runtime.NumCPU())
		f := sliceFlags{slice: time.Millisecond, asked: asked}
		if f.cut(&l, 0, sample.Wire{}, []string{sample.Lab}); want > 0.001 &&
			(l.Slice == want) == asked {
			t.Errorf("asked for: %v: slices of %g s, its turns take %g", asked, l.Slice, want)
		}
	}
}

func slicing(slice, window time.Duration, kinds ...string) *runFlags {
	f := &runFlags{builderFlags: builderFlags{on: []string{sample.Lab}},
		timing: timing{precision: 0.02},
		traffic: traffic{window: 250 * time.Millisecond,
			slicing: sliceFlags{same: 0.03, slice: slice},
			loads: loadFlags{kinds: kinds, given: func(flag string) bool {
				return window > 0 && flag == "window"
			}}}}
	if window > 0 {
		f.window = window
	}
	return f
}

func TestSlicedLoads(t *testing.T) {
	type times struct{ slice, warmup, window float64 }
	for _, tt := range []struct {
		name          string
		slice, window time.Duration
		bulk, crr     times
	}{
		{"default", 4 * time.Millisecond, 0, times{bulkSlice, sliceWarmup, windowBeside},
			times{0, 0.05, 0.25}},
		{"window", 4 * time.Millisecond, 300 * time.Millisecond, times{bulkSlice, sliceWarmup, 0.3},
			times{0, 0.05, 0.3}},
		{"the-default-window", 32 * time.Millisecond, 250 * time.Millisecond,
			times{0.032, sliceWarmup, 0.25}, times{0, 0.05, 0.25}},
		{"none", 0, 0, times{0, 0.1, 0.25}, times{0, 0.05, 0.25}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := slicing(tt.slice, tt.window, "bulk", "crr")
			r, err := f.toRequest(nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []times{tt.bulk, tt.crr} {
				if l := r.Loads[i]; (times{l.Slice, l.Warmup, l.Window}) != want {
					t.Errorf("%s: %+v, want %+v", l.Kind, l, want)
				}
			}
			if r.Same != 0.03 || r.Epoch != epochLength || r.Precision != 0.02 {
				t.Errorf("same %g, epoch %g, precision %g", r.Same, r.Epoch, r.Precision)
			}
			if why := f.slicing.whole["crr"]; (why == "") != (tt.slice == 0) ||
				f.slicing.whole["bulk"] != "" {
				t.Errorf("in visits: %v", f.slicing.whole)
			}
		})
	}
	f := slicing(0, 0, "bulk")
	f.slicing = sliceFlags{}
	if r, err := f.toRequest(nil); err != nil || r.Same != 0 || r.Epoch != 0 ||
		r.Loads[0].Slice != 0 || r.Loads[0].Window != 0.25 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestQueuesOutlastSlices(t *testing.T) {
	for _, tt := range []struct {
		mode, from, to string
		visits         bool
	}{
		{"slirp4netns", "host", "", true},
		{"pasta", "host", "loopback", true},
		{"rootless-publish", "host", "", false},
		{"rootless-publish", "container", "outside", true},
		{"publish-proxy", "host", "", false},
	} {
		f := slicing(4*time.Millisecond, 0, "bulk", "rr")
		f.from = []string{tt.from}
		if tt.to != "" {
			f.to = []string{tt.to}
		}
		r, err := f.toRequest([]string{tt.mode})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Loads[0].Slice == 0; got != tt.visits || r.Loads[1].Slice == 0 {
			t.Errorf("%+v: slices %g, %g s", tt, r.Loads[0].Slice, r.Loads[1].Slice)
		}
	}
}

func TestPrecisionOfSame(t *testing.T) {
	for _, tt := range []struct {
		same, precision float64
		given           []string
		want            float64
	}{
		{0.03, 0.02, nil, 0.02},
		{0.003, 0.02, []string{"same"}, 0.002},
		{0.1, 0.02, []string{"same"}, 0.02},
		{0.003, 0.05, []string{"same", "precision"}, 0.05},
	} {
		f := slicing(4*time.Millisecond, 0, "rr")
		f.slicing.same, f.precision = tt.same, tt.precision
		f.loads.given = func(flag string) bool { return slices.Contains(tt.given, flag) }
		r, err := f.toRequest(nil)
		if near := r.Precision - tt.want; err != nil || near > 1e-9 || near < -1e-9 {
			t.Errorf("--same %g: precision %g, %v, want %g", tt.same, r.Precision, err, tt.want)
		}
	}
}

func TestSlicesThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		change     func(*runFlags)
		want, hint string
	}{
		{func(f *runFlags) {
			f.loads.kinds = []string{"crr"}
		}, "--slice is for bulk, bulk-reverse, rr, udp-rr, query; the loads here are: crr",
			"leave --slice out, or add --load bulk"},
		{func(f *runFlags) {
			f.loads = loadsOf(t, "--load", "bulk", "--bytes", "1M", "--slice", "4ms")
		}, "--slice 4ms: bulk cannot be measured in slices: --bytes: a transfer has no fixed duration",
			"leave --slice out"},
	} {
		f := slicing(4*time.Millisecond, 0, "bulk")
		f.loads.given = func(flag string) bool { return flag == "slice" }
		tt.change(f)
		_, err := f.toRequest(nil)
		var fail *failure
		if !errors.As(err, &fail) || err.Error() != tt.want ||
			fail.Hint() != tt.hint || fail.code != exitUsage {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
	f := slicing(4*time.Millisecond, 0, "crr", "bulk")
	f.loads.given = func(flag string) bool { return flag == "slice" }
	if _, err := f.toRequest(nil); err != nil {
		t.Error(err)
	}
}

func TestDefaultsAreSliced(t *testing.T) {
	for kind, want := range map[string]bool{"bulk": true, "rr": true, "udp-rr": true, "query": true,
		"crr": false, "udp": false, "stream": false} {
		f := slicing(4*time.Millisecond, 0, kind)
		r, err := f.toRequest(nil)
		if err != nil || r.Loads[0].Slice > 0 != want {
			t.Errorf("%s: %+v, %v", kind, r.Loads, err)
		}
	}
}

func TestLengthOfSlices(t *testing.T) {
	for _, tt := range []struct {
		slice time.Duration
		load  sample.Load
		want  float64
	}{
		{4 * time.Millisecond, sample.Load{Kind: "rr"}, 0.004},
		{4 * time.Millisecond, sample.Load{Kind: "query", Options: sample.QueryOptions{Queries: 1}},
			0.004},
		{4 * time.Millisecond, sample.Load{Kind: "query",
			Options: sample.QueryOptions{Queries: 20}}, 0.01},
		{4 * time.Millisecond, sample.Load{Kind: "query",
			Options: sample.QueryOptions{Queries: 1000}}, 0.05},
		{30 * time.Millisecond, sample.Load{Kind: "query",
			Options: sample.QueryOptions{Queries: 20}}, 0.03},
	} {
		if got := (&sliceFlags{slice: tt.slice}).lengthOf(tt.load); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("--slice %s, %+v: %g s, want %g", tt.slice, tt.load, got, tt.want)
		}
	}
}
