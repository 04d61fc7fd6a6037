package engine_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// spans returns a Config.Contention in which others keep that many CPUs busy. It counts in n the
// spans that are measured.
func spans(others float64, n *int) func(own func() float64) func() sample.Contention {
	return func(own func() float64) func() sample.Contention {
		return func() sample.Contention {
			*n++
			c := sample.Contention{Elapsed: 1, CPUs: 2}
			if own() > 0 { // not NaN
				c.Others = &others
			}
			return c
		}
	}
}

func TestContentionIsOfLoads(t *testing.T) {
	const rounds = 4
	inEpochs := request()
	inEpochs.Epoch = 2
	for i := range inEpochs.Loads {
		inEpochs.Loads[i].Slice = 0.02
	}
	for _, tt := range []struct {
		name    string
		request plan.Request
		spans   int // in each round
	}{
		{"visits", request(), 6},
		{"programs", programs(rounds), 3},
		{"epochs", inEpochs, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			tt.request.Rounds = rounds
			r := try(t, context.Background(), &fake.Builder{Program: printing(steady)}, tt.request,
				func(c *engine.Config) { c.Contention = spans(0.5, &n) })
			c := r.end.Contention
			if r.err != nil || n != tt.spans*rounds || c == nil || c.Elapsed != float64(n) ||
				c.Others == nil || *c.Others != 0.5 {
				t.Errorf("%d spans, %+v, %v", n, c, r.err)
			}
		})
	}
}

func TestContentionEndsTheRun(t *testing.T) {
	n := 0
	r := try(t, context.Background(), &fake.Builder{}, request(), func(c *engine.Config) {
		c.Contention, c.EndIfBusy = spans(1.9, &n), true
	})
	if r.err != nil || r.end.Reason != sample.EndedByBusy || r.end.Rounds != 1 {
		t.Errorf("%+v, %v", r.end, r.err)
	}
}

// The run's CPU time is its workers', which have ended when it ends. The busy loops are the others.
func TestContentionOfBusyProcesses(t *testing.T) {
	l := &lab.Lab{}
	defer l.Close()
	if err := l.Check(context.Background(), hostSpec); err != nil {
		pathtest.SkipOrFail(t, "lab: %v", err)
	}
	clocks, err := meter.New()
	if err != nil {
		t.Fatal(err)
	}
	q := request()
	q.Modes, q.On, q.Rounds = []mode.Name{mode.Host}, []string{sample.Lab}, 1
	q.Loads = q.Loads[:1]
	q.Loads[0].Window = 0.5
	p, err := plan.Make(q)
	if err != nil {
		t.Fatal(err)
	}
	for range runtime.NumCPU() {
		busy := exec.Command("sh", "-c", "while kill -0 $PPID; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = busy.Process.Kill(); _ = busy.Wait() }()
	}
	spent := 0.0
	watch := func(own func() float64) func() sample.Contention {
		before, since := own(), machine.Machine{}.Contention(own)
		return func() sample.Contention {
			spent += own() - before
			return since()
		}
	}
	before := ended(t)
	end, err := engine.Run(context.Background(), engine.Config{Plan: p, Meter: clocks,
		Builders: []path.Builder{l}, Clock: engine.Monotonic{}, Contention: watch,
		Out: sample.NewWriter(&bytes.Buffer{})})
	if err != nil || end.Contention == nil || end.Contention.Others == nil {
		t.Fatalf("%+v, %v", end, err)
	}
	workers := ended(t) - before
	const some = 0.25 // CPUs; the loops get more, even if both ends share two CPUs with them
	if x := *end.Contention.Others; x < some {
		t.Errorf("others kept %.2f CPUs busy", x)
	}
	const start = 0.9 // share that workers use before and after the load, on a busy machine
	if spent < workers*(1-start) || spent > workers+some*end.Contention.Elapsed {
		t.Errorf("the run itself used %.2f s, its ended workers %.2f", spent, workers)
	}
}

// ended returns the CPU time (s) of this process's ended children.
func ended(t *testing.T) float64 {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// The wait for free CPUs takes no part of the budget, and follows the building of paths.
func TestBeforeWaits(t *testing.T) {
	const long = 1000 // s
	b, others, built := &fake.Builder{}, 0.3, 0
	q := request()
	q.Rounds, q.Budget = 1, long/10
	r := try(t, context.Background(), b, q, func(c *engine.Config) {
		c.Before = func(ctx context.Context) (*sample.Contention, error) {
			built = b.Open
			return &sample.Contention{Elapsed: 1, CPUs: 2, Others: &others},
				c.Clock.Sleep(ctx, c.Clock.Now()+long*int64(time.Second))
		}
	})
	if r.err != nil || r.end.Elapsed >= long || r.end.Reason != sample.EndedByRounds || built == 0 {
		t.Fatalf("%d paths were built, %+v, %v", built, r.end, r.err)
	}
	if c := r.file.Header.Contention; c == nil || *c.Others != others {
		t.Errorf("the header has %+v", c)
	}
	busy := errors.New("busy")
	r = try(t, context.Background(), b, q, func(c *engine.Config) {
		c.Before = func(context.Context) (*sample.Contention, error) { return nil, busy }
	})
	if !errors.Is(r.err, busy) || r.file != nil {
		t.Errorf("%v, and a file: %t", r.err, r.file != nil)
	}
}
