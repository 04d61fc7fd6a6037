package trace_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// TestNetwork plants what the kernel adds to the requests over a route, alone or compared.
func TestNetwork(t *testing.T) {
	queue := func(backlog, most int, apart bool) []sample.AcceptQueue {
		return []sample.AcceptQueue{{Process: "redis-server", Port: 6379, Apart: apart, Dropped: 3,
			Backlog: backlog, Most: most}}
	}
	steered := func(moved int, wait float64) []sample.Steered {
		return []sample.Steered{{Device: "eth0", Packets: 100, Moved: moved, Wait: wait, Stay: 1e-6}}
	}
	const off, nf = "sysctl -w net.bridge.bridge-nf-call-iptables=0", "bridge-nf-call-iptables=1"
	for name, tt := range map[string]struct {
		frames  *sample.Frames
		steered []sample.Steered
		queues  []sample.AcceptQueue
		want    trace.Finding // its Values are Took, Share and Whole, or the queue's
		none    bool
	}{
		"healthy":     {none: true},
		"few moved":   {steered: steered(20, 10e-6), none: true},
		"moved fast":  {steered: steered(90, 2e-6), none: true},
		"few packets": {steered: []sample.Steered{{Packets: 9, Moved: 9, Wait: 1e-3}}, none: true},
		"frames": {frames: &sample.Frames{Bridge: "br0", Switch: nf, Off: off},
			want: finding(trace.BridgedFrames, "br0", trace.Untried,
				"sudo toll ports --try '"+off+"'", nil)},
		"frames, nothing changes": {frames: &sample.Frames{Bridge: "br0", Switch: nf, Off: off,
			Changed: new(int)}, want: finding(trace.BridgedFrames, "br0", trace.Tried, off, nil)},
		"frames, a port changes": {frames: &sample.Frames{Bridge: "br0", Switch: nf, Off: off,
			Changed: new(1)}, want: lost(finding(trace.BridgedFrames, "br0", trace.Tried,
			"sudo toll ports --try '"+off+"'", nil), 1)},
		"frames, elsewhere": {frames: &sample.Frames{Bridge: "br0", Switch: nf},
			want: finding(trace.BridgedFrames, "br0", "", "", nil)},
		"moved": {steered: steered(90, 10e-6), want: finding(trace.Steered, "eth0", trace.Untried,
			"echo 0 | sudo tee /sys/class/net/eth0/queues/rx-*/rps_cpus",
			map[string]float64{trace.Share: 0.9, trace.Took: 10e-6, trace.Whole: 1e-6})},
		"all moved, elsewhere": {steered: []sample.Steered{{Device: "eth0", Apart: true, Packets: 50,
			Moved: 50, Wait: 10e-6}}, want: finding(trace.Steered, "eth0", "", "",
			map[string]float64{trace.Share: 1, trace.Took: 10e-6})},
		"full": {queues: queue(1, 128, true), want: finding(trace.QueueFull, "redis-server",
			trace.ByProgram, "", map[string]float64{trace.Backlog: 1, trace.Somaxconn: 128, trace.Port: 6379})},
		"full, limited": {queues: queue(128, 128, false), want: finding(trace.QueueFull,
			"redis-server", trace.ByKernel, "",
			map[string]float64{trace.Backlog: 128, trace.Somaxconn: 128, trace.Port: 6379})},
		"full, limited elsewhere": {queues: queue(128, 128, true), want: finding(trace.QueueFull,
			"redis-server", trace.ByKernelApart, "",
			map[string]float64{trace.Backlog: 128, trace.Somaxconn: 128, trace.Port: 6379})},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(what string, got []trace.Finding, n int) {
				t.Helper()
				if tt.none {
					if len(got) > 0 {
						t.Errorf("%s: %+v", what, got)
					}
					return
				}
				want := tt.want
				if want.Code == trace.QueueFull {
					want.N = n
				}
				if len(got) != 1 || got[0].Code != want.Code || got[0].What != want.What ||
					got[0].Why != want.Why || got[0].N != want.N || got[0].Command != want.Command ||
					want.Code == trace.BridgedFrames && !slices.Equal(got[0].Names, []string{nf}) ||
					!maps.Equal(got[0].Values, want.Values) {
					t.Errorf("%s: %+v, want %+v", what, got, want)
				}
			}
			for _, relay := range []float64{0, 30} {
				f := judgetest.Routes(relay, func(x *sample.Trace) { x.Queues = tt.queues })
				for i := range f.Header.Paths {
					f.Header.Paths[i].Frames, f.Header.Paths[i].Steered = tt.frames, tt.steered
				}
				// 16 of 24 rounds are traced
				check("routes", trace.Judge(f).Traces[0].Findings, 16*3)
			}
			s := &sample.Served{Frames: tt.frames, Steered: tt.steered}
			if len(tt.queues) > 0 {
				s.Queue = &tt.queues[0]
			}
			check("attached", trace.OfServed(s), 3)
		})
	}
}

// TestSleep has processes that sleep for most of a request, or for a part of it; what tracing adds to
// that does not count.
func TestSleep(t *testing.T) {
	for name, tt := range map[string]struct {
		relay, took float64 // µs; in each direction
		want        float64
	}{"mostly": {200, 80, 160}, "with tracing's cost": {200, 150, 185}, "a part": {200, 20, 0},
		"short": {10, 4, 0}} {
		divide := judgetest.Divided(0, 0)
		x := trace.Judge(judgetest.Routes(tt.relay, func(x *sample.Trace) {
			divide(x)
			for i, g := range x.Segments { // of which a tenth is asleep
				if g.Part == sample.PartRelayed {
					asleep := &x.Segments[i-2]
					x.Segments[i].MidMean, asleep.MidMean = asleep.MidMean, g.MidMean
					x.Segments[i].MidMeans, asleep.MidMeans = asleep.MidMeans, g.MidMeans
				}
			}
			p := sample.Sleeper{Process: "proxy", Took: tt.took * 1e-6}
			x.Sleepers = []sample.Sleeper{p, p}
		})).Traces[0]
		f, ok := found(x, trace.Sleep)
		if ok != (tt.want > 0) || ok && (!slices.Equal(f.Names, []string{"proxy"}) ||
			math.Abs(1e6*f.Values[trace.Took]-tt.want) > 10) {
			t.Errorf("%s: %+v", name, x.Findings)
		}
	}
}

func lost(f trace.Finding, n int) trace.Finding {
	f.N = n
	return f
}

func finding(code, what, why, command string, values map[string]float64) (f trace.Finding) {
	f.Code, f.What, f.Why, f.Command, f.Values = code, what, why, command, values
	return f
}

// TestNetworkOfBoth has what both routes share, and what only the one that others are compared with
// has.
func TestNetworkOfBoth(t *testing.T) {
	f := judgetest.Routes(30, func(x *sample.Trace) {
		x.Queues = []sample.AcceptQueue{{Process: "redis", Dropped: 1, Backlog: 1, Most: 128}}
	})
	f.Header.Paths[1].Steered = []sample.Steered{{Device: "eth0", Packets: 50, Moved: 50, Wait: 1e-4}}
	f.Header.Paths[0].Frames = &sample.Frames{Bridge: "br0", Switch: "bridge-nf-call-iptables=1"}
	f.Header.Paths[0].Steered = f.Header.Paths[1].Steered
	var got []string
	for _, x := range trace.Judge(f).Traces[0].Findings {
		got = append(got, x.Code)
	}
	if !slices.Equal(got, []string{trace.Steered, trace.QueueFull, trace.BridgedFrames}) {
		t.Errorf("%q", got)
	}
}

// TestQueueOfControl has connections dropped in the rounds in which the first route is measured once
// more: they are drops of that route.
func TestQueueOfControl(t *testing.T) {
	f := judgetest.Routes(30, nil)
	for i, v := range f.Visits {
		if f.Header.Plan.Cells[v.Cell].Control && v.Trace != nil {
			f.Visits[i].Trace.Queues = []sample.AcceptQueue{{Process: "redis", Dropped: 2, Backlog: 1,
				Most: 128}}
		}
	}
	const rounds = 16 // with captures
	x, ok := found(trace.Judge(f).Traces[0], trace.QueueFull)
	if !ok || x.N != 2*rounds {
		t.Errorf("%v, %+v", ok, x)
	}
}

// TestCausesOfOther has causes that only the route with which others are compared has: the first
// trace tells them, once. A cause that the others have too is theirs.
func TestCausesOfOther(t *testing.T) {
	for _, both := range []bool{false, true} {
		f := judgetest.Routes(10, func(x *sample.Trace) {
			relayed := slices.ContainsFunc(x.Segments, func(g sample.Segment) bool {
				return g.Part == sample.PartRelayed
			})
			if judgetest.Divided(0, 0)(x); relayed && !both {
				return
			}
			for i, g := range x.Segments {
				if g.Part == sample.PartServer { // nine tenths, its own CPU time before
					asleep := &x.Segments[i-2]
					x.Segments[i].MidMean, asleep.MidMean = asleep.MidMean, g.MidMean
					x.Segments[i].MidMeans, asleep.MidMeans = asleep.MidMeans, g.MidMeans
				}
			}
			x.Sleepers = []sample.Sleeper{{Process: "redis", Took: 45e-6}}
			x.Waits = []sample.EvidenceWait{{Cause: sample.WaitNagle, Tokens: 500, Sum: 20}}
			x.Unkept = 10
		})
		add := func(name string, like sample.Cell) { // another route
			cell := slices.Index(f.Header.Plan.Cells, like)
			path, _ := f.Header.PathOf(like)
			like.Route, path.Route = name, name
			f.Header.Plan.Cells = append(f.Header.Plan.Cells, like)
			f.Header.Paths = append(f.Header.Paths, path)
			for _, v := range f.Visits {
				if v.Cell == cell {
					v.Cell = len(f.Header.Plan.Cells) - 1
					f.Visits = append(f.Visits, v)
				}
			}
		}
		add("third", f.Header.Plan.Cells[2])
		type told struct{ code, over string }
		got := map[string][]told{}
		for _, x := range trace.Judge(f).Traces {
			for _, f := range x.Findings {
				of := x.Label
				if f.Code == trace.NotAllKept {
					of = f.What
				}
				got[of] = append(got[of], told{f.Code, f.Over})
			}
		}
		want := map[string][]told{"relayed": {{trace.RepliesWait, "direct"}, {trace.Sleep, "direct"}},
			"direct": {{trace.NotAllKept, ""}}}
		if both {
			own := []told{{trace.RepliesWait, ""}, {trace.NotAllKept, ""}, {trace.Sleep, ""}}
			want = map[string][]told{"relayed": own, "third": own, "direct": {{trace.NotAllKept, ""}}}
		}
		if !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("both %v: %+v, want %+v", both, got, want)
		}
	}
}
