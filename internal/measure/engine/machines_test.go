package engine_test

import (
	"context"
	"errors"
	"math"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

type farBuilder struct {
	*fake.Builder
	a, b *remote
	// moved returns what the channel has moved at the nth reading.
	moved  func(n int) uint64
	mu     sync.Mutex
	asked  int
	hushed int
}

func (f *farBuilder) Build(ctx context.Context, s path.Spec) (*path.Path, error) {
	p, err := f.Builder.Build(ctx, s)
	if err != nil {
		return nil, err
	}
	p.Machines, p.Channel = []path.Machine{f.a, f.b}, f
	for i := range p.Servers {
		p.Servers[i].Machine = f.b
	}
	for i := range p.Clients {
		p.Clients[i].Machine = f.a
	}
	p.Proxies = []path.Proxy{{Name: "relay", PID: 7, Machine: f.b}}
	return p, nil
}

func (f *farBuilder) Hush(context.Context, time.Duration) (func(), error) {
	f.hushed++
	return sync.OnceFunc(func() { f.hushed-- }), nil
}

func (f *farBuilder) Moved() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.moved == nil {
		return 0
	}
	return f.moved(f.asked)
}

type remote struct {
	name   string
	offset path.Offset
	lost   func() error
	use    path.Use
	mu     sync.Mutex
	orders [][2]int64
	pids   []int
}

func (m *remote) Name() string { return m.name }
func (m *remote) Err() error {
	if m.lost == nil {
		return nil
	}
	return m.lost()
}
func (m *remote) Clock(context.Context) (path.Offset, error) { return m.offset, m.Err() }
func (m *remote) Meter(_ context.Context, from, to int64, pids ...int) (path.Metering, error) {
	m.mu.Lock()
	m.orders, m.pids = append(m.orders, [2]int64{from, to}), pids
	m.mu.Unlock()
	return func(context.Context) (path.Use, error) {
		u := m.use
		if u.Elapsed == 0 {
			u.Elapsed = float64(to-from) / 1e9
		}
		return u, nil
	}, nil
}

func apart() *farBuilder {
	cpu := sample.CPU{User: 0.1, Idle: 0.1}
	return &farBuilder{Builder: &fake.Builder{Called: sample.Swarm},
		a: &remote{name: "node a", offset: path.Offset{
			Ahead: time.Hour, Unsure: 100 * time.Microsecond},
			use: path.Use{CPUs: []sample.CPU{cpu}}},
		b: &remote{name: "node b", offset: path.Offset{
			Ahead: -time.Minute, Unsure: 300 * time.Microsecond},
			use: path.Use{CPUs: []sample.CPU{cpu, cpu}, Procs: []float64{0.125}, Throttled: 2,
				Control: path.Traffic{Packets: 3}}}}
}

func tryApart(t *testing.T, f *farBuilder, q plan.Request) result {
	t.Helper()
	q.On = []string{f.Name()}
	return try(t, context.Background(), f.Builder, q, func(c *engine.Config) {
		c.Builders = []path.Builder{f}
		var err error
		if c.Plan, err = engine.Check(context.Background(), c.Plan, c.Builders); err != nil {
			t.Fatal(err)
		}
	})
}

func rounds(n int) plan.Request {
	q := request()
	q.Rounds = n
	return q
}

func TestMachinesAreMeteredByTheirClocks(t *testing.T) {
	f := apart()
	r := tryApart(t, f, rounds(1))
	if r.err != nil || len(r.file.Visits) != 6 || len(r.report.Failed) > 0 {
		t.Fatalf("%v, %d visits, %+v", r.err, len(r.file.Visits), r.report.Failed)
	}
	for _, v := range r.file.Visits {
		if len(v.Machine) != 3 || math.Abs(v.Elapsed-0.25) > 1e-9 || v.Throttled != 2 ||
			v.Proxy == nil || v.Proxy.CPU != 0.125 || len(v.Machines) != 2 {
			t.Fatalf("visit %+v", v)
		}
		a, b := v.Machines[0], v.Machines[1]
		if a != (sample.MachineUse{Name: "node a", CPUs: 1, Ahead: 3600, Unsure: 1e-4}) ||
			b != (sample.MachineUse{Name: "node b", CPUs: 2, Ahead: -60, Unsure: 3e-4,
				ControlPackets: 3}) {
			t.Errorf("machines %+v", v.Machines)
		}
	}
	for i, o := range f.a.orders {
		if o[1]-o[0] != int64(250*time.Millisecond) ||
			o[0]-f.b.orders[i][0] != int64(time.Hour+time.Minute) {
			t.Errorf("order %v and %v", o, f.b.orders[i])
		}
	}
	if len(f.b.pids) != 1 || f.b.pids[0] != 7 || len(f.a.pids) != 0 || f.hushed != 0 {
		t.Errorf("processes %v and %v, %d hushes", f.a.pids, f.b.pids, f.hushed)
	}
}

func TestWindowsOfOtherMachinesAreGuarded(t *testing.T) {
	warmUp := regexp.MustCompile(`warm-up of [\d.]+ s`)
	for _, tt := range []struct {
		name string
		set  func(*farBuilder)
		load *sample.Load
		want string // in each visit's failure; "": good, without CPU figures
	}{
		{"word-here", func(f *farBuilder) {
			f.moved = func(n int) uint64 { return uint64(n) }
		}, nil, "the channel to the agents carried 1 bytes in the window"},
		{"word-there", func(f *farBuilder) {
			f.b.use.Control.Bytes = 40
		}, nil, "the channel to node b carried 40 bytes in the window"},
		{"unsure", func(f *farBuilder) {
			f.a.offset.Unsure = 20 * time.Millisecond
		}, nil, "the machines' clocks are only known to ± 0.04 s, too coarsely for a warm-up of " +
			"N s " +
			"and a window of 0.25 s"},
		{"lost", func(f *farBuilder) {
			f.b.lost = func() error { return errors.New("node b left: it closed the connection") }
		}, nil, "node b left: it closed the connection"},
		{"late-meter", func(f *farBuilder) { f.a.use.Elapsed = 0.3 }, nil, ""},
		{"transfer", func(f *farBuilder) {
			f.a.use.Elapsed, f.b.use.Elapsed = 1, 1
		}, &sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: 1e6}, Window: 0.25},
			"good"},
		{"unsure-transfer", func(f *farBuilder) {
			f.a.offset.Unsure, f.a.use.Elapsed, f.b.use.Elapsed = 6*time.Millisecond, 1, 1
		},
			&sample.Load{Kind: "bulk", Options: sample.BulkOptions{Bytes: 1e6}, Window: 0.25},
			"the machines' clocks are only known to ± 0.012 s, too coarsely for a " +
				"transfer that took 1 s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := apart()
			tt.set(f)
			q := rounds(1)
			if tt.load != nil {
				q.Loads = []sample.Load{*tt.load}
			}
			r := tryApart(t, f, q)
			if r.err != nil || len(r.file.Visits) == 0 {
				t.Fatal(r.err)
			}
			for _, v := range r.file.Visits {
				switch tt.want {
				case "good":
					if v.Failure != "" || len(v.Machine) != 3 {
						t.Errorf("visit %+v", v)
					}
				case "":
					if v.Failure != "" || len(v.Machine) > 0 || v.Elapsed != 0 ||
						v.Machines[0].CPUs != 0 {
						t.Errorf("visit %+v", v)
					}
				default:
					got := warmUp.ReplaceAllString(v.Failure, "warm-up of N s") // its load's
					if got != tt.want {
						t.Errorf("%q, want %q", got, tt.want)
					}
				}
			}
		})
	}
}

func TestVisitsAreRepeatedWhenTheChannelSpoke(t *testing.T) {
	for name, q := range map[string]plan.Request{"visits": rounds(1), "epochs": sliced(1)} {
		t.Run(name, func(t *testing.T) {
			f := apart()
			f.moved = func(n int) uint64 {
				if n > 1 {
					return 78
				}
				return 0
			}
			r := tryApart(t, f, q)
			if r.err != nil || len(r.file.Visits) != 6 || len(r.report.Failed) > 0 {
				t.Fatalf("%v, %d visits, %+v", r.err, len(r.file.Visits), r.report.Failed)
			}
			repeats := 0
			for _, v := range r.file.Visits {
				if v.Failure != "" {
					t.Errorf("failure %q", v.Failure)
				}
				repeats = max(repeats, v.Repeats)
			}
			if repeats != 1 {
				t.Errorf("the most repeats of a visit are %d", repeats)
			}
		})
	}
	t.Run("always", func(t *testing.T) {
		f := apart()
		f.moved = func(n int) uint64 { return uint64(n) }
		r := tryApart(t, f, rounds(1))
		tried := map[sample.Turn]bool{}
		for _, v := range r.file.Visits {
			if v.Repeats != 2 || v.Failure != "the channel to the agents carried 1 bytes in the window" {
				t.Errorf("%d repeats, failure %q", v.Repeats, v.Failure)
			}
			tried[v.Turn] = true
		}
		if r.err != nil || len(tried) != len(r.file.Visits) || f.hushed != 0 {
			t.Errorf("%v, visits %v, %d hushes", r.err, tried, f.hushed)
		}
	})
}

func TestLostInAVisit(t *testing.T) {
	f := apart()
	n := 0
	f.b.lost = func() error {
		if n > 0 {
			return errors.New("node b left: it gave no answer")
		}
		return nil
	}
	f.Die = func(path.Spec, int) bool { n++; return true }
	r := tryApart(t, f, rounds(2))
	for _, v := range r.file.Visits {
		if v.Failure != "node b left: it gave no answer" {
			t.Errorf("failure %q", v.Failure)
		}
	}
	if r.err != nil || n == 0 {
		t.Errorf("%v after %d deaths", r.err, n)
	}
}

// A broken channel ends the run. If a path's machine itself is gone, only its cells are lost.
func TestChannelBreaks(t *testing.T) {
	cut := &path.CutError{Err: errors.New("the stream to node b broke")}
	begin := func(inspected func(path.Spec) error) (*farBuilder, *bool) {
		f, broken := apart(), false
		f.b.lost = func() error {
			if broken = broken || len(f.b.orders) >= 2*6+1; broken {
				return cut
			}
			return nil
		}
		if inspected != nil {
			f.Settings = func(s path.Spec, _ int) ([]path.Setting, error) {
				if !broken {
					return nil, nil
				}
				return nil, inspected(s)
			}
		}
		return f, &broken
	}
	for name, inspected := range map[string]func(path.Spec) error{
		"uninspected": nil,
		"cut":         func(path.Spec) error { return cut },
		"unchanged":   func(path.Spec) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := begin(inspected)
			r := tryApart(t, f, rounds(9))
			if !errors.Is(r.err, cut) || r.end.Reason != sample.EndedByFailure ||
				r.end.Rounds != 2 || r.end.Detail != cut.Error() {
				t.Errorf("%v, end %+v", r.err, r.end)
			}
			failed := 0
			for _, v := range r.file.Visits {
				if v.Failure != "" {
					failed++
				}
			}
			if failed != 1 || len(r.report.Failed) != 0 || len(r.report.Cells) != 4 ||
				len(r.file.Changes) != 0 {
				t.Errorf("%d visits failed; failed cells %+v, %d have a result; changes %+v",
					failed, r.report.Failed, len(r.report.Cells), r.file.Changes)
			}
		})
	}
	t.Run("machine-gone", func(t *testing.T) {
		f, broken := begin(nil)
		f.Settings = func(path.Spec, int) ([]path.Setting, error) {
			if !*broken {
				return nil, nil
			}
			return nil, errors.New("it said nothing")
		}
		r := tryApart(t, f, rounds(4))
		if len(r.report.Failed) == 0 {
			t.Errorf("%v, end %+v, changes %+v", r.err, r.end, r.file.Changes)
		}
		for _, c := range r.report.Failed {
			if c.Reason != "an end of its path was lost" {
				t.Errorf("%+v", c)
			}
		}
	})
	t.Run("gone", func(t *testing.T) {
		f, broken := begin(nil)
		gone := false
		f.Settings = func(s path.Spec, _ int) ([]path.Setting, error) {
			if gone = gone || *broken; !gone || s.Mode != mode.Bridge {
				return nil, nil
			}
			f.b.lost = nil // only that path's pod
			return nil, &path.LeftError{Node: "b", Err: errors.New("its pod was deleted")}
		}
		r := tryApart(t, f, rounds(4))
		if r.err != nil || r.end.Rounds != 4 || len(r.report.Failed) != 2 ||
			len(r.file.Changes) != 1 {
			t.Errorf("%v, end %+v, failed cells %+v, changes %+v", r.err, r.end, r.report.Failed,
				r.file.Changes)
		}
		for _, c := range r.report.Failed {
			if c.Mode != mode.Bridge || c.Reason != "an end of its path was lost" {
				t.Errorf("%+v", c)
			}
		}
	})
}

func TestLoadsOfOneClockAreSkippedAfar(t *testing.T) {
	f := apart()
	q := rounds(1)
	q.Loads = append(q.Loads, sample.Load{Kind: "stream", Warmup: 0.1, Window: 0.25},
		sample.Load{Kind: "exec", Options: sample.ExecOptions{
			Program: &sample.Program{Server: "s", Client: "c", Timeout: 1}}, Window: 1})
	r := tryApart(t, f, q)
	why := map[string]string{}
	for _, s := range r.file.Header.Plan.Skipped {
		why[s.Load] = s.Reason
	}
	if r.err != nil || why["stream"] != "the delay of each token is between the clocks of both ends, and those of two machines are not one" ||
		why["exec"] != "toll run starts programs on this machine only" || len(r.file.Visits) != 6 {
		t.Errorf("%v, skipped %v, %d visits", r.err, why, len(r.file.Visits))
	}
	for _, v := range r.file.Visits {
		if v.Failure != "" {
			t.Error(v.Failure)
		}
	}
}
