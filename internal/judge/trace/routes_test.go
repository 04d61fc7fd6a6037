package trace_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// TestRoutes judges routes whose replies have one segment, so that their transfer takes no time.
func TestRoutes(t *testing.T) {
	r := trace.Judge(judgetest.Routes(30, func(x *sample.Trace) {
		x.Segments = append(x.Segments, sample.Segment{SegmentKey: sample.SegmentKey{Reply: true,
			Part: sample.PartTransfer}, Share: 1, MidMeans: make([]float64, len(x.Slots))})
	}))
	if len(r.Traces) != 2 || !r.Traces[0].Route() || r.Traces[0].Against != "direct" {
		t.Fatalf("%+v", r.Traces)
	}
	got := r.Traces[0]
	want := map[string]float64{"relay proxy": 30, "network": 4}
	for _, row := range got.Rows {
		if row.Name == string(sample.PartTransfer) {
			t.Errorf("%+v", row)
		}
		if off := 1e6*row.Added.Median - want[row.Name]; math.Abs(off) > 0.3 {
			t.Errorf("%s adds %+v, want %v µs", row.Name, row.Added, want[row.Name])
		}
		if known := row.Name == "relay proxy" || row.Name == "network"; row.Added.Known() != known {
			t.Errorf("%s: %s", row.Name, row.Added.Verdict)
		}
	}
	if math.Abs(1e6*got.Untraced.Median-34) > 0.3 || math.Abs(1e6*got.Unattributed.Median) > 0.5 ||
		got.Followed != 1 || got.WakeUps.N != 0 || got.Relay.Verdict != stats.Costs {
		t.Errorf("%+v", got)
	}
	if named := got.Named(); len(named) != 2 || named[0].Name != "relay proxy" ||
		named[1].Name != "network" {
		t.Errorf("named are %+v", named)
	}
	if f := r.Found; !slices.Equal(codes(f), []string{trace.RequestAdded, trace.SlowestIn,
		trace.RepeatedDiffers, trace.Followed}) || math.Abs(1e6*f[1].Values[trace.Whole]-982) > 1 {
		t.Errorf("found %+v", f)
	}
}

func TestRouteAlone(t *testing.T) {
	r := trace.Judge(judgetest.Routes(0, nil))
	if len(r.Traces) != 1 || r.Traces[0].Against != "" || r.Traces[0].Refused != "" {
		t.Fatalf("%+v", r.Traces)
	}
	named := r.Traces[0].Named()
	if sum := r.Traces[0].Request(); math.Abs(1e6*sum-65) > 0.5 || named[0].Name != "server" ||
		math.Abs(1e6**named[0].Mine-50) > 0.5 || r.Found[0].Code != trace.RequestTakes {
		t.Errorf("%v: %+v, %+v", sum, named, r.Found)
	}
}

// TestRelayCosts lets each copy of the captures cost the relayed route more than they do elsewhere:
// while the relay runs, until it is woken, or in the server behind it, also if that varies. It is
// learned from how each part grows, so the parts add up.
func TestRelayCosts(t *testing.T) {
	divided := judgetest.Divided(0, 0)
	for _, c := range []struct {
		part         sample.Part
		more, varies float64 // than in Routes, s
		within       float64 // µs
	}{{sample.PartRelayed, 2e-6, 0, 0.3}, {sample.PartRelayedAsleep, 2e-6, 0, 0.3},
		{sample.PartServer, 2e-6, 0, 0.3}, {sample.PartNetwork, 2e-6, 0, 0.3},
		{sample.PartServer, 10e-6, 5e-6, 0.5}} {
		t.Run(fmt.Sprint(c.part, c.more), func(t *testing.T) {
			varies := c.varies
			got := trace.Judge(judgetest.Routes(30, func(x *sample.Trace) {
				divided(x)
				copies := 1.0
				if x.State == sample.TracedThrice {
					copies = sample.TraceCopies
				}
				relayed := slices.ContainsFunc(x.Segments, func(g sample.Segment) bool {
					return g.Part == sample.PartRelayed
				})
				for i := range x.Segments {
					g := &x.Segments[i]
					if g.Part != c.part || !relayed {
						continue
					}
					cost := copies * c.more
					if x.State == sample.TracedThrice {
						cost, varies = cost+varies, -varies
					}
					g.MidMean += cost
					for k := range g.MidMeans {
						g.MidMeans[k] += cost
					}
				}
			})).Traces[0]
			i := slices.IndexFunc(got.Rows, func(row trace.Row) bool {
				return row.Name == "relay proxy"
			})
			sum := 0.0
			for _, p := range got.Rows[i].Parts {
				sum += p.Added.Median
			}
			if relay := got.Rows[i].Added.Median; math.Abs(1e6*relay-30) > 0.2 ||
				math.Abs(1e6*(sum-relay)) > 0.01 || math.Abs(1e6*got.Unattributed.Median) > c.within {
				t.Errorf("the relay takes %g s, its parts %g, %+v are not attributed", relay, sum,
					got.Unattributed)
			}
		})
	}
}

// TestRowOfOtherEpochs has a row in epochs with copies that those without lack.
func TestRowOfOtherEpochs(t *testing.T) {
	for _, relay := range []float64{0, 30} {
		got := trace.Judge(judgetest.Routes(relay, func(x *sample.Trace) {
			if x.State == sample.Traced { // no write of the server was seen
				i := slices.IndexFunc(x.Segments, func(g sample.Segment) bool {
					return g.Part == sample.PartServerTCP
				})
				x.Segments = slices.Delete(x.Segments, i, i+1)
			}
		})).Traces[0]
		for _, row := range got.Rows {
			if relay == 0 && row.Mine == nil {
				t.Errorf("%s has no time", row.Name)
			}
		}
		if len(got.Named()) == 0 {
			t.Errorf("no part of %+v", got)
		}
	}
}

// TestTailOfSomeEpochs lets every other epoch have too few requests for the p99.
func TestTailOfSomeEpochs(t *testing.T) {
	n := 0
	r := trace.Judge(judgetest.Routes(0, func(x *sample.Trace) {
		for i := range x.Segments {
			if n++; x.State == sample.Traced && n/len(x.Segments)%4 < 2 {
				x.Segments[i].Tail = 1e-3
			}
		}
	}))
	i := slices.Index(codes(r.Found), trace.TailIn)
	if want := 1e-3 * float64(len(r.Traces[0].Segments)); i < 0 ||
		math.Abs(r.Found[i].Values[trace.Whole]-want) > 1e-9 {
		t.Errorf("found %+v, want a p99 of %g s", r.Found, want)
	}
}

// TestRouteBroken checks that below 95 % of the requests nothing but the first broken step is shown.
func TestRouteBroken(t *testing.T) {
	for followed, refused := range map[int]bool{960: false, 940: true} {
		r := trace.Judge(judgetest.Routes(30, func(x *sample.Trace) {
			x.Followed = followed
			x.Broken = []sample.Break{{Share: 1 - float64(followed)/1000, After: "request sent",
				Want: "its packets"}}
		}))
		got := r.Traces[0]
		if (got.Refused != "") != refused || refused == (len(got.Rows) > 0) {
			t.Errorf("%d: %+v", followed, got.Refusal)
		}
		if refused && (got.After != "request sent" || got.Want != "its packets" ||
			math.Abs(got.Lacking-0.06) > 1e-9 || r.Found[0].Code != trace.NotDivided ||
			r.Complete()) {
			t.Errorf("%+v, %+v", got.Refusal, r.Found)
		}
	}
}

// TestUnanswered counts lost requests and errors of DNS in all rounds of a route and of the one it is
// compared with.
func TestUnanswered(t *testing.T) {
	f := judgetest.Routes(30, nil)
	rounds := 0
	for i := range f.Visits {
		c := f.Header.Plan.Cells[f.Visits[i].Cell]
		switch {
		case c.Control:
			f.Visits[i].Client.Counts = map[string]int64{workload.CountUnanswered: 99}
		case c.Route == "relayed":
			rounds++
			f.Visits[i].Client.Counts = map[string]int64{workload.CountUnanswered: 1}
		default:
			f.Visits[i].Client.Counts = map[string]int64{workload.CountDNSError + "REFUSED": 2,
				workload.CountDNSError + "SERVFAIL": 3, workload.CountHTTPStatus + "404 Not Found": 4}
		}
	}
	x := trace.Judge(f).Traces[0]
	if f, _ := found(x, trace.NoReply); f.N != rounds || f.What != "relayed" {
		t.Errorf("found %+v, want %d", f, rounds)
	}
	if f, _ := found(x, trace.ErrorReplies); f.What != "direct" || !maps.Equal(f.Values,
		map[string]float64{"SERVFAIL": 3 * float64(rounds), "REFUSED": 2 * float64(rounds)}) ||
		len(x.Findings) != 3 {
		t.Errorf("found %+v", x.Findings)
	}
	if f, _ := found(x, trace.OtherReplies); f.What != "direct" || !maps.Equal(f.Values,
		map[string]float64{"of HTTP status 404 Not Found": 4 * float64(rounds)}) {
		t.Errorf("found %+v", x.Findings)
	}
}

func TestRepliesThatWait(t *testing.T) {
	r := trace.Judge(judgetest.Routes(30, func(x *sample.Trace) {
		x.Waits = []sample.EvidenceWait{{Cause: sample.WaitNagle, Tokens: 500, Sum: 20}}
	}))
	if f := r.Traces[0].Findings; len(f) != 1 || f[0].Code != trace.RepliesWait ||
		f[0].What != sample.WaitNagle || f[0].N != 4000 || f[0].Values[trace.Took] != 160 {
		t.Errorf("%+v", f)
	}
}

// TestRouteTooShort has no round with one copy of each capture: nothing is wrong, but the run ended.
func TestRouteTooShort(t *testing.T) {
	for _, relay := range []float64{0, 30} {
		r := trace.Judge(judgetest.Routes(relay, func(x *sample.Trace) { x.State = sample.TracedThrice }))
		got := r.Traces[0]
		if !got.Early || got.Followed != 1 || len(got.Rows) > 0 {
			t.Errorf("%+v", got)
		}
		if f := codes(r.Found[:2]); !slices.Equal(f, []string{trace.NotDivided, trace.TooShort}) ||
			got.Refused != trace.EndedEarly {
			t.Errorf("%q, %q", f, got.Refused)
		}
	}
}

// TestRouteUnsure lets what tracing costs differ from round to round by more than the parts.
func TestRouteUnsure(t *testing.T) {
	for relay, want := range map[float64]string{
		0: trace.RequestSeems, 30: trace.RequestUnsure,
	} {
		n := 0
		r := trace.Judge(judgetest.Routes(relay, func(x *sample.Trace) {
			n++
			for i := range x.Totals {
				x.Totals[i] *= float64(1 + n%5*10)
			}
		}))
		if f := codes(r.Found[:2]); !slices.Equal(f, []string{want, trace.CostUnsure}) {
			t.Errorf("%q, want %s\n%+v", f, want, r.Traces[0].Cost)
		}
	}
}

func TestRelayShortOfCPU(t *testing.T) {
	for name, tt := range map[string]struct {
		waits, late, stopped float64
		code                 string
		values               map[string]float64
		tail                 bool
	}{
		"enough": {waits: 2e-6, late: 3e-6},
		"always": {waits: 30e-6, code: trace.OthersHaveCPU,
			values: map[string]float64{trace.Took: 60e-6}},
		"at times": {waits: 2e-6, late: 4e-3, stopped: 0.5, code: trace.StoppedByLimit, tail: true,
			values: map[string]float64{trace.Took: 4e-6, trace.Tail: 8e-3, trace.Stopped: 4,
				trace.Window: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			relay, divide := 100.0, judgetest.Divided(tt.waits, tt.late)
			r := trace.Judge(judgetest.Routes(relay, func(x *sample.Trace) {
				if divide(x); tt.stopped > 0 && x.Segments[1].Hop == "network" {
					x.Stopped = []sample.Stopped{{Process: "proxy", For: tt.stopped, Of: 1}}
				}
			}))
			got := r.Traces[0]
			if f, ok := found(got, tt.code); ok != (tt.code != "") || len(got.Findings) > 1 ||
				ok && f.What != "proxy" || !near(f.Values, tt.values) {
				t.Errorf("finds %+v, want %s of %v", got.Findings, tt.code, tt.values)
			}
			i := slices.Index(codes(r.Found), trace.TailIn)
			if i >= 0 != tt.tail || i >= 0 && (r.Found[i].What != "relay proxy" ||
				r.Found[i].Why != "waiting for a CPU") {
				t.Errorf("found %+v", r.Found)
			}
			for _, row := range got.Rows {
				if (row.Name == "relay proxy" || row.Name == "server") != (len(row.Parts) == 3) {
					t.Errorf("%s has %+v", row.Name, row.Parts)
				}
				if row.Name != "relay proxy" {
					continue
				}
				for i, want := range []float64{0.9*relay - 2*tt.waits*1e6, 2 * tt.waits * 1e6, 0.1 * relay} {
					if x := row.Parts[i]; math.Abs(1e6**x.Mine-want) > 0.5 ||
						math.Abs(1e6*x.Added.Median-want) > 0.5 {
						t.Errorf("%s is %g and adds %+v, want %g µs", x.Name, *x.Mine, x.Added,
							want)
					}
				}
			}
		})
	}
}

func near(a, b map[string]float64) bool {
	return len(a) == len(b) && !slices.ContainsFunc(slices.Collect(maps.Keys(b)), func(k string) bool {
		return !(math.Abs(a[k]-b[k]) <= 0.01*b[k])
	})
}

// TestNetworkIsDivided has a network of which a relay's route has a part that the other one lacks,
// and a bridge there that takes longer.
func TestNetworkIsDivided(t *testing.T) {
	for _, more := range []float64{0, 2e-6} {
		r := trace.Judge(judgetest.Routes(30, judgetest.OnNetwork(more)))
		row := r.Traces[0].Row(string(sample.PartNetwork))
		want := []struct {
			name             string
			its, mine, added float64 // µs
		}{{"lo", -1, 4, 4}, {"veth", 1, 1, 0}, {"bridge docker0", 3, 3 + 2e6*more, 2e6 * more}}
		if row == nil || len(row.Parts) != len(want) || len(row.Divided()) != len(want) {
			t.Fatalf("%+v", row)
		}
		its, mine, added := 0.0, 0.0, 0.0
		for i, w := range want {
			p := row.Parts[i]
			if lacks := p.Its == nil; p.Name != w.name || lacks != (w.its < 0) ||
				!lacks && math.Abs(1e6**p.Its-w.its) > 0.1 || math.Abs(1e6**p.Mine-w.mine) > 0.1 ||
				math.Abs(1e6*p.Added.Median-w.added) > 0.1 || p.Added.Known() != (w.added > 0) {
				t.Errorf("%+v, want %+v", p, w)
			}
			if p.Its != nil {
				its += *p.Its
			}
			mine, added = mine+*p.Mine, added+p.Added.Median
		}
		if math.Abs(its-*row.Its) > 0.05e-6 || math.Abs(mine-*row.Mine) > 1e-12 ||
			math.Abs(added-row.Added.Median) > 1e-12 {
			t.Errorf("%g, %g and %g make %+v", its, mine, added, row)
		}
	}
}

// TestNetworkIsNotDivided has rounds, or a route, of which nothing is known of the devices.
func TestNetworkIsNotDivided(t *testing.T) {
	divide, n := judgetest.OnNetwork(0), 0
	for name, some := range map[string]func(x *sample.Trace) bool{
		"a round": func(*sample.Trace) bool { n++; return n != 4 },
		"a route": func(x *sample.Trace) bool {
			return slices.ContainsFunc(x.Segments, func(g sample.Segment) bool {
				return g.Part == sample.PartRelayed
			})
		},
	} {
		r := trace.Judge(judgetest.Routes(30, func(x *sample.Trace) {
			if some(x) {
				divide(x)
			}
		}))
		if row := r.Traces[0].Row(string(sample.PartNetwork)); row == nil || len(row.Parts) > 0 {
			t.Errorf("%s: %+v", name, row)
		}
	}
}

// TestDivided leaves out parts of a network that says little.
func TestDivided(t *testing.T) {
	long, short := 1e-6, 0.1e-6
	known := analysis.Price{Verdict: stats.Costs}
	for name, tt := range map[string]struct {
		row  trace.Row
		want int
	}{
		"long":  {trace.Row{Name: "network", Mine: &long, Parts: make([]trace.Row, 2)}, 2},
		"its":   {trace.Row{Name: "network", Its: &long, Parts: make([]trace.Row, 2)}, 2},
		"one":   {trace.Row{Name: "network", Mine: &long, Parts: make([]trace.Row, 1)}, 0},
		"short": {trace.Row{Name: "network", Mine: &short, Parts: make([]trace.Row, 2)}, 0},
		"differs": {trace.Row{Name: "network", Mine: &short,
			Parts: []trace.Row{{Added: known}, {}}}, 2},
		"no network": {trace.Row{Name: "server", Mine: &short, Parts: make([]trace.Row, 3)}, 3},
	} {
		if got := len(tt.row.Divided()); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
