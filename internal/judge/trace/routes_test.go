package trace_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestRoutes(t *testing.T) {
	r := trace.Judge(judgetest.Routes(30, nil))
	if len(r.Traces) != 2 || !r.Traces[0].Route() || r.Traces[0].Against != "direct" {
		t.Fatalf("%+v", r.Traces)
	}
	got := r.Traces[0]
	want := map[string]float64{"relay proxy": 30, "network": 4}
	for _, row := range got.Rows {
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
	for _, text := range []string{"relayed adds 34.0 µs", "a request over direct",
		"µs in proxy", "µs in the network", "The slowest took 982 µs, "} {
		if !strings.Contains(r.Answer.Text[0], text) {
			t.Errorf("%q lacks %q", r.Answer.Text, text)
		}
	}
}

func TestRouteAlone(t *testing.T) {
	r := trace.Judge(judgetest.Routes(0, nil))
	if len(r.Traces) != 1 || r.Traces[0].Against != "" || r.Traces[0].Refused != "" {
		t.Fatalf("%+v", r.Traces)
	}
	sum := 0.0
	for _, row := range r.Traces[0].Rows {
		sum += *row.Mine
	}
	if text := r.Answer.Text[0]; math.Abs(1e6*sum-65) > 0.5 || !strings.HasPrefix(text,
		"Over direct a request takes 65") || !strings.Contains(text, "server 50") {
		t.Errorf("%v: %s", sum, text)
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
			t.Errorf("%d: %q", followed, got.Refused)
		}
		if refused && (!strings.Contains(r.Answer.Text[0], "after request sent, its packets is missing "+
			"in 6.0 %") || r.Complete()) {
			t.Error(r.Answer.Text)
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
				workload.CountDNSError + "SERVFAIL": 3}
		}
	}
	var got []string
	for _, x := range trace.Judge(f).Traces[0].Findings {
		got = append(got, x.Text)
	}
	want := []string{
		fmt.Sprintf("Over relayed, %d requests had no reply, and are in no figure.", rounds),
		fmt.Sprintf("Over direct, replies were errors, whose time counts: %d SERVFAIL, %d REFUSED.",
			3*rounds, 2*rounds)}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRepliesThatWait(t *testing.T) {
	r := trace.Judge(judgetest.Routes(30, func(x *sample.Trace) {
		x.Waits = []sample.EvidenceWait{{Cause: sample.WaitNagle, Tokens: 500, Sum: 20}}
	}))
	if f := r.Traces[0].Findings; len(f) != 1 || !strings.Contains(f[0].Text,
		"4000 replies waited 40.0 ms each in the server's TCP for acknowledgements") {
		t.Errorf("%+v", f)
	}
}

// TestRouteTooShort has no round with one copy of each capture: nothing is wrong, but the run ended.
func TestRouteTooShort(t *testing.T) {
	for _, relay := range []float64{0, 30} {
		r := trace.Judge(judgetest.Routes(relay, func(x *sample.Trace) { x.State = sample.TracedThrice }))
		got, text := r.Traces[0], r.Answer.Text[0]
		if !got.Early || got.Followed != 1 || len(got.Rows) > 0 {
			t.Errorf("%+v", got)
		}
		if strings.Contains(text, "not followed") || !strings.Contains(text, "the run ended before the "+
			"rounds that show the parts of ") || !strings.HasSuffix(text, "A longer --budget has them.") {
			t.Error(text)
		}
	}
}

// TestRouteUnsure lets what tracing costs differ from round to round by more than the parts.
func TestRouteUnsure(t *testing.T) {
	for relay, want := range map[float64]string{
		0:  "A request over direct seems to take 65.0 µs (server 50.0 µs, ",
		30: "relayed adds 34.0 µs (",
	} {
		n := 0
		r := trace.Judge(judgetest.Routes(relay, func(x *sample.Trace) {
			n++
			for i := range x.Totals {
				x.Totals[i] *= float64(1 + n%5*10)
			}
		}))
		if text := r.Answer.Text[0]; !strings.HasPrefix(text, want) || !strings.HasSuffix(text,
			"that is not known to within the largest part. A longer --budget tells.") {
			t.Errorf("%s\n%+v", text, r.Traces[0].Cost)
		}
	}
}

func TestRelayShortOfCPU(t *testing.T) {
	for name, tt := range map[string]struct {
		waits, late, stopped float64
		finds                string
		says                 string
	}{
		"enough": {waits: 2e-6, late: 3e-6},
		"always": {waits: 30e-6, finds: "proxy is short of CPU: waiting for one takes 60.0 µs of a " +
			"request. No CPU limit stopped it: other programs had the CPU."},
		"at times": {waits: 2e-6, late: 4e-3, stopped: 0.5, finds: "proxy is short of CPU: waiting for " +
			"one takes 4.00 µs of a request, and 8.00 ms of those around the p99. A CPU limit stopped it " +
			"for 4 of 8 s.", says: "The p99 is 8.00 ms, 8.00 ms of it in proxy, waiting for a CPU."},
	} {
		t.Run(name, func(t *testing.T) {
			relay, divide := 100.0, judgetest.Divided(tt.waits, tt.late)
			r := trace.Judge(judgetest.Routes(relay, func(x *sample.Trace) {
				if divide(x); tt.stopped > 0 && x.Segments[1].Hop == "network" {
					x.Stopped = []sample.Stopped{{Process: "proxy", For: tt.stopped, Of: 1}}
				}
			}))
			got := r.Traces[0]
			var found []string
			for _, f := range got.Findings {
				found = append(found, f.Text)
			}
			if text := strings.Join(found, " "); text != tt.finds {
				t.Errorf("finds %q, want %q", text, tt.finds)
			}
			if text := r.Answer.Text[0]; !strings.Contains(text, tt.says) ||
				tt.says == "" && strings.Contains(text, "p99") {
				t.Errorf("%q lacks %q", text, tt.says)
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
						t.Errorf("%s is %g and adds %+v, want %g µs", x.Name, *x.Mine, x.Added, want)
					}
				}
			}
		})
	}
}
