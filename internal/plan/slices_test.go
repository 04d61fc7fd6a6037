package plan

import (
	"math"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
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

		{"udp", sample.Load{Kind: "udp", Streams: 1}, 0.004, none, lab,
			"toll searches for the highest rate, or keeps a given one"},
		{"crr", sample.Load{Kind: "crr"}, 0.004, none, lab,
			"its closed connections outlast a slice"},
		{"stream", sample.Load{Kind: "stream"}, 0.004, none, lab,
			"its tokens are sent at a fixed pace"},
		{"exec", sample.Load{Kind: "exec"}, 0.004, none, lab, "it is not toll's own"},
		{"transfer", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: 1}}, 0.004, none,
			lab, "--bytes: a transfer has no fixed duration"},
		{"open-loop", sample.Load{Kind: "rr", Options: sample.RROptions{Rate: 100}}, 0.004, none,
			lab, "--rate: requests are sent at a fixed pace"},
		{"under-load", sample.Load{Kind: "rr", Options: sample.RROptions{Beside: true}}, 0.004,
			none, lab, "--under-load: two loads run at once"},
		{"streams", sample.Load{Kind: "bulk", Streams: 17}, 0.004, none, lab,
			"the client or server has 17 threads, which must share the CPUs"},
		{"streams-both-ways", sample.Load{Kind: "bulk", Streams: 9,
			Options: sample.BulkOptions{Bidir: true}}, 0.004, none, lab,
			"the client or server has 18 threads, which must share the CPUs"},
		{"rate", sample.Load{Kind: "bulk"}, 0.004, sample.Wire{Rate: 1e9}, lab,
			"--wire: a slow link still holds data of earlier slices"},
		{"delay", sample.Load{Kind: "bulk"}, 0.004, sample.Wire{Delay: 50e-6}, lab,
			"--wire: a slow link still holds data of earlier slices"},
		{"swarm", sample.Load{Kind: "bulk"}, 0.004, none, []string{sample.Lab, "swarm"},
			"--on swarm: the speed of the link between the nodes is unknown"},
		{"trips-on-swarm", sample.Load{Kind: "rr"}, 0.004, none, []string{sample.Lab, "swarm"}, ""},
		{"long-pages", sample.Load{Kind: "query", Options: sample.QueryOptions{Queries: 100}},
			0.004, none, lab, "a slice is too short for it: --slice 16ms"},
		{"long-replies", sample.Load{Kind: "rr",
			Options: sample.RROptions{Messages: sample.Messages{Request: 1, Reply: 4 << 20}}},
			0.004, none, lab, "a slice is too short for it: --slice 9ms"},
		{"long-writes", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Write: 64 << 20}},
			0.1, none, lab, "a slice is too short for it: --slice 135ms"},
		{"longer-slices", sample.Load{Kind: "bulk", Options: sample.BulkOptions{Write: 64 << 20}},
			0.135, none, lab, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := uncut(tt.load, tt.slice, 2, Request{Wire: tt.wire, On: tt.on})
			if got != tt.why {
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
		l := sample.Load{Kind: "bulk", Streams: workload.ManyThreads}
		want := turnsSlice(l, 2)
		s := Slicing{Slice: 0.001, Asked: asked, CPUs: 2}
		got, _ := s.Cut(Request{Loads: []sample.Load{l}, On: []string{sample.Lab}})
		if (got[0].Slice == want) == asked {
			t.Errorf("asked for: %v: slices of %g s, its turns take %g", asked, got[0].Slice, want)
		}
	}
}

func TestQueuesOutlastSlices(t *testing.T) {
	for _, tt := range []struct {
		mode   mode.Name
		from   mode.Placement
		to     []mode.Target
		visits bool
	}{
		{mode.Slirp4netns, mode.FromHost, nil, true},
		{mode.Pasta, mode.FromHost, []mode.Target{mode.ToLoopback}, true},
		{mode.RootlessPublish, mode.FromHost, nil, false},
		{mode.RootlessPublish, mode.FromContainer, []mode.Target{mode.ToOutside}, true},
		{mode.PublishProxy, mode.FromHost, nil, false},
	} {
		got, _ := Slicing{Slice: 0.004, CPUs: 2}.Cut(Request{Modes: []mode.Name{tt.mode},
			From: []mode.Placement{tt.from}, To: tt.to, On: []string{sample.Lab},
			Loads: []sample.Load{{Kind: "bulk"}, {Kind: "rr"}}})
		if visits := got[0].Slice == 0; visits != tt.visits || got[1].Slice == 0 {
			t.Errorf("%+v: slices %g, %g s", tt, got[0].Slice, got[1].Slice)
		}
	}
}

// The reasons of a run hold for every load that could be sliced; a user may override some.
func TestRunsWithoutSlices(t *testing.T) {
	const slow = "the nodes' clocks are unknown"
	for _, tt := range []struct {
		name    string
		slicing Slicing
		request Request
		why     string
	}{
		{"unpinned", Slicing{}, Request{Pin: sample.PinNone}, unpinnedVisits},
		{"unpinned and asked", Slicing{Asked: true}, Request{Pin: sample.PinNone}, unpinnedVisits},
		{"of the machine", Slicing{Asked: true}, Request{Tunes: []mode.Tunes{"rmem_max=16M"}},
			heldVisits},
		{"a backend", Slicing{Visits: slow}, Request{}, slow},
		{"a backend, asked", Slicing{Visits: slow, Asked: true}, Request{}, ""},
		{"distant", Slicing{}, Request{Pin: sample.PinNone, On: []string{sample.Swarm}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.slicing.Slice, tt.slicing.CPUs = 0.004, 2
			tt.request.Loads = []sample.Load{{Kind: "rr", Warmup: 0.05}}
			got, whole := tt.slicing.Cut(tt.request)
			if whole["rr"] != tt.why || (got[0].Slice > 0) != (tt.why == "") {
				t.Errorf("%+v: %q", got[0], whole["rr"])
			}
			if tt.why == unpinnedVisits && got[0].Warmup != settleTime {
				t.Errorf("a warm-up of %g s", got[0].Warmup)
			}
		})
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
		got := Slicing{Slice: tt.slice.Seconds(), CPUs: 2}.length(tt.load)
		if math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("--slice %s, %+v: %g s, want %g", tt.slice, tt.load, got, tt.want)
		}
	}
}

func TestTakeTurns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		load   sample.Load
		longer bool
	}{
		{"one", sample.Load{Streams: 1}, false},
		{"sixteen", sample.Load{Streams: 16}, false},
		{"both-ways", sample.Load{Streams: 16, Options: sample.BulkOptions{Bidir: true}}, true},
		{"many", sample.Load{Streams: 200}, true},
		{"many-transfers", sample.Load{Streams: 200, Options: sample.BulkOptions{Bytes: 1}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := tt.load
			l.Kind, l.Warmup, l.Window = "bulk", 0.1, 0.001
			l = TakeTurns(l, 0.003)
			if grown := l.Warmup > 0.1 && l.Window > 0.001; grown != tt.longer {
				t.Errorf("warm-up %g s, window %g s", l.Warmup, l.Window)
			}
		})
	}
}
