package engine_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"regexp"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

var (
	hostSpec   = path.Spec{Mode: mode.Host, From: mode.FromHost, To: mode.ToLoopback}
	bridgeSpec = path.Spec{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer}
)

func request() plan.Request {
	return plan.Request{Modes: []mode.Name{mode.Host, mode.Bridge},
		From: []mode.Placement{mode.FromHost},
		Loads: []sample.Load{{Kind: "bulk", Warmup: 0.1, Window: 0.25},
			{Kind: "rr", Warmup: 0.05, Window: 0.25}},
		On: []string{"fake"}, Budget: 60, Precision: 0.02, Baseline: mode.Host, Seed: 1}
}

type result struct {
	end    sample.End
	err    error
	file   *sample.File
	report *analysis.Report
}

func try(t *testing.T, ctx context.Context, b *fake.Builder, r plan.Request,
	change func(*engine.Config)) result {
	t.Helper()
	p, err := plan.Make(r)
	if err != nil {
		t.Fatal(err)
	}
	builders := []path.Builder{b}
	if p, err = engine.Check(ctx, p, builders); err != nil {
		t.Fatal(err)
	}
	clock := &fake.Clock{}
	var records bytes.Buffer
	c := engine.Config{Plan: p, Builders: builders, Meter: fake.Meter{Clock: clock}, Clock: clock,
		Out:   sample.NewWriter(&records),
		Judge: func(h sample.Header) engine.Judge { return analysis.NewLive(h, analysis.ToBaseline) }}
	if change != nil {
		change(&c)
	}
	var out result
	out.end, out.err = engine.Run(ctx, c)
	if b.Open != 0 {
		t.Errorf("%d paths were left open", b.Open)
	}
	if records.Len() > 0 {
		if out.file, err = sample.Read(&records); err != nil {
			t.Fatalf("read back: %v", err)
		}
		out.report = analysis.Judge(out.file)
	}
	return out
}

// drift returns a rate that changes with each round. Bridge's is 0.8 of host's.
func drift(s path.Spec, _ string, n int) float64 {
	rate := []float64{1e6, 3e5, 2e6, 5e5, 1e6, 8e5, 4e5}[n/2%7] // host is visited twice a round
	if s == bridgeSpec {
		rate = 0.8 * []float64{1e6, 3e5, 2e6, 5e5, 1e6, 8e5, 4e5}[n%7]
	}
	return rate
}

func TestRunMeasuresWritesAndJudges(t *testing.T) {
	r := try(t, context.Background(), &fake.Builder{}, request(), nil)
	if r.err != nil || r.end.Reason != sample.EndedByPrecision || r.end.Rounds != stats.MinValues {
		t.Fatalf("end %+v, %v", r.end, r.err)
	}
	if n := len(r.file.Visits); n != stats.MinValues*6 {
		t.Errorf("%d visits", n)
	}
	for _, v := range r.file.Visits {
		if v.Failure != "" || !v.Witness.OK {
			t.Errorf("visit %+v", v)
		}
	}
	if len(r.report.Cells) != 4 || len(r.report.Failed) != 0 {
		t.Fatalf("%d cells, %d failed", len(r.report.Cells), len(r.report.Failed))
	}
	if x := r.report.Cells[0].Metrics[workload.Throughput].Median; x < 7.9e6 || x > 8.1e6 {
		t.Errorf("throughput %g bit/s", x)
	}
	if x := r.report.Cells[0].CPU; x.Unit != "s/B" || math.Abs(x.Client-0.5e-6) > 1e-9 ||
		x.Rest > 1e-9 {
		t.Errorf("CPU %+v", x)
	}
}

func TestVariantsAreBuiltAndLoaded(t *testing.T) {
	b := &fake.Builder{}
	q := request()
	q.Tunes, q.Rounds = []mode.Tunes{"mtu=9000", "nodelay=off"}, 1
	r := try(t, context.Background(), b, q, nil)
	if r.err != nil || len(r.report.Failed) > 0 {
		t.Fatal(r.err, r.report.Failed)
	}
	seen := map[mode.Tunes]int{}
	for i, s := range b.Visits {
		seen[s.Tune]++
		if off := b.Loads[i].Nodelay == "off"; off != (s.Tune == "nodelay=off") {
			t.Errorf("%s was visited with %+v", s, b.Loads[i])
		}
	}
	if seen["mtu=9000"] != 4 || seen["nodelay=off"] != 4 || seen[""] != 6 {
		t.Errorf("visits by variant: %v", seen)
	}
	if len(r.file.Header.Paths) != 6 {
		t.Errorf("%d paths", len(r.file.Header.Paths))
	}
}

func TestRatiosSurviveDrift(t *testing.T) {
	req := request()
	req.Loads = req.Loads[:1]
	req.Rounds = 7
	r := try(t, context.Background(), &fake.Builder{Rate: drift}, req, nil)
	if r.err != nil {
		t.Fatal(r.err)
	}
	for _, c := range r.report.Cells {
		if c.Mode != "bridge" {
			continue
		}
		x := c.Metrics[workload.Throughput].Ratio
		if x == nil || x.Median < 0.79 || x.Median > 0.81 || x.Verdict != "worse" {
			t.Errorf("ratio %+v", x)
		}
	}
}

func TestOrderIsThePlans(t *testing.T) {
	b := &fake.Builder{}
	req := request()
	req.Rounds = 3
	r := try(t, context.Background(), b, req, nil)
	p := r.file.Header.Plan
	i := 0
	for round := range 3 {
		for _, turn := range plan.Turns(p, round) {
			cell := turn.Cells[0]
			if v := r.file.Visits[i]; v.Cell != cell || v.Round != round {
				t.Fatalf("visit %d: round %d cell %d, the plan says round %d cell %d", i, v.Round,
					v.Cell, round, cell)
			}
			if b.Visits[i].Mode != p.Cells[cell].Mode {
				t.Errorf("visit %d went to %s", i, b.Visits[i])
			}
			i++
		}
	}
}

func TestWhatEndsARun(t *testing.T) {
	noisy := func(_ path.Spec, _ string, n int) float64 {
		return 1e6 * (1 + 0.5*float64((n*7919)%13))
	}
	usual, err := plan.Make(request())
	if err != nil {
		t.Fatal(err)
	}
	least := plan.LeastTime(usual)
	for _, c := range []struct {
		name   string
		change func(*plan.Request)
		rate   func(path.Spec, string, int) float64
		want   string
	}{
		{"precision", func(*plan.Request) {}, nil, sample.EndedByPrecision},
		{"budget", func(r *plan.Request) { r.Precision = 1e-6 }, noisy, sample.EndedByBudget},
		{"rounds", func(r *plan.Request) { r.Rounds = 2 }, noisy, sample.EndedByRounds},
		{"least-rounds", func(r *plan.Request) {
			r.Budget, r.Precision = 0.95*least, 1e-6
		}, noisy, sample.EndedByBudget},
		{"too-short", func(r *plan.Request) {
			r.Budget, r.Precision = least/2, 1e-6
		}, noisy, sample.EndedByBudget},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := request()
			c.change(&req)
			r := try(t, context.Background(), &fake.Builder{Rate: c.rate}, req, nil)
			if r.err != nil || r.end.Reason != c.want {
				t.Errorf("ended by %q, %v; want %q", r.end.Reason, r.err, c.want)
			}
			if c.name == "least-rounds" && r.end.Rounds != plan.MinRounds {
				t.Errorf("%d rounds", r.end.Rounds)
			}
			if c.name == "too-short" && (r.end.Rounds >= plan.MinRounds ||
				r.end.Elapsed > 1.2*req.Budget) {
				t.Errorf("%d rounds, a budget of %g s took %g s", r.end.Rounds, req.Budget,
					r.end.Elapsed)
			}
			if c.name == "budget" && (r.end.Elapsed > 60 || r.end.Elapsed < 50) {
				t.Errorf("a budget of 60 s took %g s", r.end.Elapsed)
			}
		})
	}
}

func TestUnwitnessedCellIsAFailure(t *testing.T) {
	b := &fake.Builder{Bypass: func(s path.Spec, _ int) bool { return s == bridgeSpec }}
	r := try(t, context.Background(), b, request(), nil)
	if r.err != nil || len(r.report.Failed) != 2 {
		t.Fatalf("%v, failed %+v", r.err, r.report.Failed)
	}
	for _, f := range r.report.Failed {
		if f.Mode != "bridge" || f.Evidence != "veth fake0 (nowhere): counted 0 bytes to the server, the load moved 250000" {
			t.Errorf("failed %+v", f)
		}
	}
	for _, c := range r.report.Cells {
		if c.Mode == "bridge" {
			t.Error("an unwitnessed cell has a row")
		}
	}
}

func TestDeadWorkerFailsItsVisitOnly(t *testing.T) {
	b := &fake.Builder{Die: func(s path.Spec, n int) bool { return s == bridgeSpec && n == 1 }}
	req := request()
	req.Rounds = 6
	r := try(t, context.Background(), b, req, nil)
	if r.err != nil || len(r.report.Failed) != 0 {
		t.Fatalf("%v, failed %+v", r.err, r.report.Failed)
	}
	died := 0
	for _, v := range r.file.Visits {
		if v.Failure != "" {
			died++
			if v.Failure != "server, client: the worker died" {
				t.Errorf("failure %q", v.Failure)
			}
		}
	}
	if died != 1 {
		t.Errorf("%d visits failed", died)
	}
}

func TestStarvedVisitIsNoResult(t *testing.T) {
	b := &fake.Builder{Starve: func(s path.Spec, n int) bool { return s == bridgeSpec && n == 2 }}
	req := request()
	req.Rounds = 6
	r := try(t, context.Background(), b, req, nil)
	starved := 0
	for _, v := range r.file.Visits {
		if v.Failure != "" {
			starved++
			if v.Failure != "the machine was too busy: a window of 0.25 s was planned, and 25.0 ms were measured" {
				t.Errorf("failure %q", v.Failure)
			}
		}
	}
	if starved != 1 || r.err != nil {
		t.Errorf("%d visits failed, %v", starved, r.err)
	}
}

func TestCellThatAlwaysFailsIsGivenUp(t *testing.T) {
	b := &fake.Builder{Die: func(s path.Spec, _ int) bool { return s == bridgeSpec }}
	req := request()
	req.Rounds = 10
	r := try(t, context.Background(), b, req, nil)
	tried := 0
	for _, v := range r.file.Visits {
		if r.file.Header.Plan.Cells[v.Cell].Mode == "bridge" {
			tried++
		}
	}
	if tried != 2*(3+2) {
		t.Errorf("a cell that always fails was tried %d times", tried)
	}
	if len(r.report.Cells) != 2 {
		t.Errorf("%d cells", len(r.report.Cells))
	}
}

func TestLastVisitIsMadeAgain(t *testing.T) {
	seconds := regexp.MustCompile(`[\d.]+ s after`)
	const perRound, rounds = 2, 6
	for _, tt := range []struct {
		name string
		die  func(n int) bool
		want int
	}{
		{"broke", func(n int) bool { return n >= perRound*(rounds-1) }, 2},
		{"spoilt", func(n int) bool { return n == perRound*(rounds-1) }, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &fake.Builder{Die: func(s path.Spec, n int) bool {
				return s == bridgeSpec && tt.die(n)
			}}
			req := request()
			req.Rounds = rounds
			r := try(t, context.Background(), b, req, nil)
			if len(r.report.Cells) != tt.want || r.end.Rounds != rounds {
				t.Errorf("%d cells after %d rounds, failed %+v", len(r.report.Cells), r.end.Rounds,
					r.report.Failed)
			}
			for _, f := range r.report.Failed {
				const want = "the path broke in round 6, N s after the start, and did not come back"
				if got := seconds.ReplaceAllString(f.Reason, "N s after"); got != want {
					t.Errorf("%q, want %q", got, want)
				}
			}
		})
	}
}

func TestRunThatStopsWorking(t *testing.T) {
	const works = 4
	req := request()
	req.Rounds = 100
	dies := func(_ path.Spec, n int) bool { return n >= works }
	r := try(t, context.Background(), &fake.Builder{Die: dies}, req, nil)
	if r.err != nil || r.end.Reason != sample.EndedByFailure || r.end.Rounds > 5 {
		t.Errorf("%v, end %+v, want cut short by failures after some rounds", r.err, r.end)
	}
	if len(r.report.Cells) != 0 {
		t.Errorf("%d rows of paths that broke", len(r.report.Cells))
	}
}

func TestUnsupportedAndBrokenPathsAreSkipped(t *testing.T) {
	missing := &machine.UnsupportedError{Missing: "CONFIG_BRIDGE", Remedy: "modprobe bridge"}
	r := try(t, context.Background(), &fake.Builder{
		Unsupported: map[path.Spec]error{bridgeSpec: missing}}, request(), nil)
	if s := r.report.Skipped; len(s) != 1 || s[0].Reason != "CONFIG_BRIDGE" ||
		s[0].Remedy != "modprobe bridge" {
		t.Errorf("skipped %+v", s)
	}
	broken := errors.New("no more memory")
	r = try(t, context.Background(), &fake.Builder{Broken: map[path.Spec]error{bridgeSpec: broken}},
		request(), nil)
	if s := r.report.Skipped; r.err != nil || len(s) != 1 ||
		s[0].Reason != "no more memory" {
		t.Errorf("%v, skipped %+v", r.err, s)
	}
	if r.end.Reason != sample.EndedByPrecision {
		t.Errorf("end %+v", r.end)
	}
	r = try(t, context.Background(), &fake.Builder{
		Broken: map[path.Spec]error{bridgeSpec: broken, hostSpec: broken}}, request(), nil)
	var nothing *engine.NothingBuiltError
	if !errors.As(r.err, &nothing) || !errors.Is(r.err, broken) || r.file != nil {
		t.Errorf("nothing could be built: %v", r.err)
	}
}

func TestCheckThatCannotTellSkips(t *testing.T) {
	p, err := plan.Make(request())
	if err != nil {
		t.Fatal(err)
	}
	odd := errors.New("netlink: odd")
	p, err = engine.Check(context.Background(), p,
		[]path.Builder{&fake.Builder{Unsupported: map[path.Spec]error{bridgeSpec: odd}}})
	if err != nil || len(p.Skipped) != 1 || p.Skipped[0].Reason != odd.Error() {
		t.Errorf("Check = %v, skipped %+v", err, p.Skipped)
	}
}

func TestInterruptedCheck(t *testing.T) {
	p, err := plan.Make(request())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	cancel(stop)
	_, err = engine.Check(ctx, p, []path.Builder{
		&fake.Builder{Unsupported: map[path.Spec]error{bridgeSpec: context.Canceled}}})
	if !errors.Is(err, stop) {
		t.Errorf("Check = %v", err)
	}
}

func TestInterruptKeepsWhatWasMeasured(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	r := try(t, ctx, &fake.Builder{}, request(), func(c *engine.Config) {
		c.Progress = func(p engine.Progress) {
			if p.Round == 2 {
				cancel(stop)
			}
		}
	})
	if r.err != nil || r.end.Reason != sample.EndedByInterrupt || r.end.Rounds != 2 {
		t.Errorf("end %+v, %v", r.end, r.err)
	}
	if r.file.Truncated || len(r.file.Visits) != 12 {
		t.Errorf("truncated %v, %d visits", r.file.Truncated, len(r.file.Visits))
	}
}

type full struct {
	bytes.Buffer
	room int
}

var errFull = errors.New("no space left on device")

func (f *full) Write(b []byte) (int, error) {
	if f.room--; f.room < 0 {
		return 0, errFull
	}
	return f.Buffer.Write(b)
}

func TestFullDiskEndsTheRun(t *testing.T) {
	disk := &full{room: 5}
	r := try(t, context.Background(), &fake.Builder{}, request(), func(c *engine.Config) {
		c.Out = sample.NewWriter(disk)
	})
	if !errors.Is(r.err, errFull) || r.end.Reason != sample.EndedByFailure {
		t.Errorf("end %+v, %v", r.end, r.err)
	}
	f, err := sample.Read(&disk.Buffer)
	if err != nil || len(f.Visits) != 4 || !f.Truncated {
		t.Errorf("what was written before: %v, %+v", err, f)
	}
}

func TestProgressTellsWhatComes(t *testing.T) {
	var seen []int
	req := request()
	req.Rounds = 2
	try(t, context.Background(), &fake.Builder{}, req, func(c *engine.Config) {
		c.Progress = func(p engine.Progress) { seen = append(seen, p.Round*p.Visits+p.Visit) }
	})
	want := make([]int, 12)
	for i := range want {
		want[i] = i
	}
	if !slices.Equal(seen, want) {
		t.Errorf("progress %v", seen)
	}
}
