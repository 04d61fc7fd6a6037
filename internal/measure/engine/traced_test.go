package engine_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

// tracer notes what the engine requests. It records nothing.
type tracer struct {
	clock           engine.Clock
	attached        []kernel.Config
	from, until     []int64
	stopped         []int64
	running         bool
	refuse, unhappy error
	calls           int                     // of Others
	others          func(call int) []string // nil: none
}

func (t *tracer) Attach(c kernel.Config) (engine.Recording, error) {
	if t.running {
		return nil, errors.New("a recording runs")
	}
	t.attached = append(t.attached, c)
	t.running = t.refuse == nil
	return t, t.refuse
}

func (t *tracer) Missing() []string { return []string{"sk_data_ready"} }

func (t *tracer) Others() []string {
	if t.others == nil {
		return nil
	}
	t.calls++
	return t.others(t.calls)
}

func (t *tracer) Between(from, until int64) {
	t.from, t.until = append(t.from, from), append(t.until, until)
}

func (t *tracer) Stop() error {
	t.running = false
	t.stopped = append(t.stopped, t.clock.Now())
	return t.unhappy
}

func (t *tracer) Log() (byCPU [][]kernel.Event, lost int) { return nil, 3 }

func traced(rounds int) plan.Request {
	q := sliced(rounds)
	q.Loads = q.Loads[1:]
	q.Study = sample.StudyTrace
	q.CPUs = sample.CPUs{Client: []int{0}, Server: []int{1}, Relay: []int{1}}
	return q
}

func tryTraced(t *testing.T, ctx context.Context, q plan.Request, tr *tracer,
	change func(*engine.Config)) result {
	t.Helper()
	return try(t, ctx, &fake.Builder{}, q, func(c *engine.Config) {
		c.Plan.Trace = &sample.TracePlan{}
		c.Tracer, tr.clock, c.Judge = tr, c.Clock, nil
		if change != nil {
			change(c)
		}
	})
}

func TestTracedEpochs(t *testing.T) {
	tr := &tracer{}
	r := tryTraced(t, context.Background(), traced(6), tr, nil)
	if r.err != nil || len(r.file.Visits) != 6*3 {
		t.Fatalf("end %+v, %v, %d visits", r.end, r.err, len(r.file.Visits))
	}
	p, of := r.file.Header.Plan, map[sample.Tracing]int{}
	for _, v := range r.file.Visits {
		state := plan.TracingOf(p, v.Round)
		of[state]++
		if v.Failure != "" || !v.Witness.OK {
			t.Errorf("visit %+v", v)
		}
		if state == sample.Untraced {
			if v.Trace != nil || v.Slices == nil || len(v.Slices.Medians) == 0 ||
				v.Latency == nil || v.Elapsed == 0 || v.Client.Window == 0 {
				t.Errorf("an untraced epoch's visit is %+v", v)
			}
			continue
		}
		if v.Trace == nil || v.Slices != nil || v.Trace.State != state || v.Latency != nil ||
			v.Elapsed != 0 || v.Client.Window != 0 {
			t.Fatalf("a visit in state %q is %+v", state, v)
		}
	}
	for _, state := range []sample.Tracing{sample.Untraced, sample.Traced, sample.TracedThrice} {
		if of[state] != 2*3 {
			t.Errorf("%d visits in state %q", of[state], state)
		}
	}
	if len(tr.attached) != 4 || len(tr.from) != 4 || len(tr.stopped) != 4 || tr.running {
		t.Fatalf("attached %d times, limited %d, stopped %d", len(tr.attached), len(tr.from),
			len(tr.stopped))
	}
	thrice := 0
	for i, c := range tr.attached {
		if c.Copies > 1 {
			thrice++
		}
		if !slices.Equal(c.CPUs, []int{0, 1}) || !slices.Equal(c.Ports, []uint16{5201}) ||
			!slices.Equal(c.PIDs, []int{1}) || c.Hooks != nil {
			t.Errorf("recorded %+v", c)
		}
		if length := tr.until[i] - tr.from[i]; length < 9e8 || length > 2e9 ||
			tr.stopped[i] != tr.until[i] {
			t.Errorf("from %d until %d, stopped at %d", tr.from[i], tr.until[i], tr.stopped[i])
		}
	}
	if thrice != 2 {
		t.Errorf("%d epochs were traced thrice", thrice)
	}
}

// spaced builds paths that share one namespace.
type spaced struct {
	*fake.Builder
	opened []*os.File
}

func (b *spaced) Build(ctx context.Context, s path.Spec) (*path.Path, error) {
	p, err := b.Builder.Build(ctx, s)
	if err != nil {
		return nil, err
	}
	p.Namespaces = func() ([]path.Namespace, error) {
		var out []path.Namespace
		for _, inode := range []uint32{7, uint32(100 + len(s.Mode))} {
			f, err := os.Open(os.DevNull)
			if err != nil {
				return out, err
			}
			b.opened = append(b.opened, f)
			out = append(out, path.Namespace{File: f,
				Links: []sample.Link{{Name: "lo", NetNS: inode, Index: 1}}})
		}
		return out, nil
	}
	return p, nil
}

func TestHooksAreInEachNamespaceOnce(t *testing.T) {
	tr, b := &tracer{}, &spaced{Builder: &fake.Builder{}}
	r := tryTraced(t, context.Background(), traced(4), tr, func(c *engine.Config) {
		c.Plan.Trace.Hooks = true
		c.Builders = []path.Builder{b}
	})
	if r.err != nil || len(tr.attached) != 3 {
		t.Fatalf("%v, attached %d times", r.err, len(tr.attached))
	}
	hooks := 0
	for _, c := range tr.attached {
		hooks += len(c.Hooks)
	}
	if hooks != 3 { // of two paths with a namespace each, and one that they share
		t.Errorf("%d namespaces have hooks", hooks)
	}
	for _, f := range b.opened {
		if _, err := f.Stat(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a namespace was left open: %v", err)
		}
	}
}

func TestTraceUntilBudget(t *testing.T) {
	for budget, least := range map[float64]int{30: 15, 5: 6} {
		q := traced(0)
		q.Budget = budget
		r := tryTraced(t, context.Background(), q, &tracer{}, nil)
		if r.err != nil || r.end.Reason != sample.EndedByBudget || r.end.Rounds < least ||
			r.end.Elapsed > 1.1*budget {
			t.Errorf("budget %g: %+v, %v; want %d rounds at least", budget, r.end, r.err, least)
		}
	}
}

func TestLogsOfTracedCPUs(t *testing.T) {
	apart := sample.CPUs{Client: []int{0}, Server: []int{1}}
	for _, c := range []struct {
		name string
		cpus sample.CPUs
		tune mode.Tunes
		want []int
		each int // events at least
	}{
		{"apart", apart, "", []int{0, 1}, 1 << 20},
		{"together", sample.CPUs{Client: []int{3}, Server: []int{3}}, "", []int{3}, 3 << 20},
		{"unpinned", sample.CPUs{}, "", []int{0, 1, 2, 3, 4, 5, 6, 7}, 1 << 19},
		{"tuned", apart, "mtu=9000", []int{0, 1}, 1 << 20},
		{"steered", apart, "rps=on", []int{0, 1, 2, 3, 4, 5, 6, 7}, 1 << 19},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, tr := traced(3), &tracer{}
			if q.CPUs = c.cpus; c.tune != "" {
				q.Tunes = []mode.Tunes{c.tune}
			}
			r := tryTraced(t, context.Background(), q, tr, func(c *engine.Config) {
				c.Environment.CPUsAllowed = []int{0, 1, 2, 3, 4, 5, 6, 7}
			})
			if r.err != nil || len(tr.attached) != 2 {
				t.Fatalf("%v, attached %d times", r.err, len(tr.attached))
			}
			if got := tr.attached[0]; !slices.Equal(got.CPUs, c.want) || got.Events < c.each ||
				got.Events*len(got.CPUs) > 1<<22 {
				t.Errorf("%d events on CPUs %v", got.Events, got.CPUs)
			}
		})
	}
}

func TestUntraceableEpochEndsTheRun(t *testing.T) {
	full := errors.New("no memory left")
	for name, tt := range map[string]struct {
		tr   *tracer
		want string
	}{"attach": {&tracer{refuse: full}, "trace: no memory left"},
		"stop": {&tracer{unhappy: full}, "stop tracing: no memory left"}} {
		t.Run(name, func(t *testing.T) {
			r := tryTraced(t, context.Background(), traced(6), tt.tr, nil)
			if !errors.Is(r.err, full) || r.end.Reason != sample.EndedByFailure ||
				r.end.Rounds > 1 || tt.tr.running {
				t.Errorf("%+v, %v", r.end, r.err)
			}
			if got := r.file.Visits[len(r.file.Visits)-1].Failure; got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestInterruptEndsTracing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	tr := &tracer{}
	r := tryTraced(t, ctx, traced(6), tr, func(c *engine.Config) {
		c.Clock.(*fake.Clock).OnSleep = func(int64) {
			if tr.running {
				cancel()
			}
		}
	})
	if r.err != nil || r.end.Reason != sample.EndedByInterrupt || tr.running ||
		len(tr.stopped) != 1 {
		t.Errorf("%+v, %v, stopped at %v", r.end, r.err, tr.stopped)
	}
}

// Programs of others that are always attached do not matter. One that comes or goes disturbs the
// epoch, which is repeated and, if that does not help, left out.
func TestOthersTrace(t *testing.T) {
	const own, toll = "watch at sched_switch", "toll_switch at sched_switch"
	during := func(from, until int, program string, all ...string) func(int) []string {
		return func(call int) []string {
			if call < from || call >= until {
				return all
			}
			return append([]string{program}, all...)
		}
	}
	for _, c := range []struct {
		name   string
		others func(call int) []string // two calls for each epoch
		lost   int                     // epochs
		said   string
	}{
		{"always", during(0, 100, own), 0, ""},
		{"toll always", during(0, 100, toll), 3,
			"another program traced the kernel: another toll trace"},
		{"toll first", during(1, 2, toll, own), 0, ""},
		{"passing", during(6, 7, own), 0, ""},
		{"coming", during(7, 100, own), 3, "another program traced the kernel: " + own},
		{"going", during(0, 7, own), 3, "another program traced the kernel and stopped: " + own},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := tryTraced(t, context.Background(), traced(6), &tracer{others: c.others}, nil)
			if r.err != nil {
				t.Fatal(r.err)
			}
			lost := map[int]bool{}
			for _, v := range r.file.Visits {
				if v.Failure == "" {
					continue
				}
				lost[v.Round] = true
				if !v.Starved || v.Failure != c.said || v.Repeats != 2 {
					t.Errorf("%+v", v.Outcome)
				}
			}
			if len(lost) != c.lost {
				t.Errorf("%d epochs are lost, want %d", len(lost), c.lost)
			}
		})
	}
}
