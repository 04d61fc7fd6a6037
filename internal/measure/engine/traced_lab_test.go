package engine_test

import (
	"bytes"
	"context"
	"math"
	"os"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	_ "github.com/bridgetoll/bridgetoll/internal/measure/worker/start"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestTraceOfTheKernel(t *testing.T) {
	tracer, err := trace.Open()
	if err != nil {
		pathtest.SkipOrFail(t, "tracing: %v", err)
	}
	defer tracer.Close()
	testwait.Unhindered(t, 3*time.Minute, func(u testing.TB) {
		traces := 0
		f := traceInLab(t, tracer)
		for _, v := range f.Visits {
			c := f.Header.Plan.Cells[v.Cell]
			switch {
			case v.Starved:
				u.Errorf("%s: %s", c.Name(), v.Failure)
			case v.Failure != "":
				t.Errorf("%s: %s", c.Name(), v.Failure)
			case v.Trace != nil:
				traces++
				followed(t, u, c.Name(), v.Trace)
			}
		}
		if traces != 2*3 {
			u.Errorf("%d traces of 3 cells in 2 epochs", traces)
		}
	})
}

func traceInLab(t *testing.T, tracer *trace.Tracer) *sample.File {
	t.Helper()
	here, _ := machine.Machine{}.Read()
	clocks, err := meter.New()
	if err != nil {
		t.Fatal(err)
	}
	q := traced(3)
	if q.On, q.Epoch = []string{"lab"}, 2; os.Getenv("BRIDGETOLL_VM") != "" {
		q.Epoch = 0.4 // an emulated CPU takes a hundred times as long
	}
	q.Loads[0].Slice = 0.02 // so long that some are on time while other tests run
	p, err := plan.Make(q)
	if err != nil {
		t.Fatal(err)
	}
	cpus := here.CPUsAllowed
	p.Trace = &sample.TracePlan{}
	p.CPUs = sample.CPUs{Client: cpus[:1], Server: cpus[len(cpus)-1:], Relay: cpus[:1]}
	l := &lab.Lab{}
	defer l.Close()
	var records bytes.Buffer
	_, err = engine.Run(context.Background(), engine.Config{Plan: p, Environment: here,
		Builders: []path.Builder{l}, Meter: clocks, Clock: engine.Monotonic{},
		Tracer: engine.Kernel{Tracer: tracer}, Out: sample.NewWriter(&records)})
	if err != nil {
		t.Fatal(err)
	}
	f, err := sample.Read(&records)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// followed checks a trace. On a busy machine fewer trips may be followed: other threads run between
// the steps of a trip, also those that continue it.
func followed(t *testing.T, u testing.TB, name string, x *sample.Trace) {
	t.Helper()
	const least = 0.98
	if x.Trips == 0 || x.Lost > 0 || float64(x.Followed) < least*float64(x.Trips) {
		u.Errorf("%s, %s: %d of %d trips followed, %d events lost; the others' ends: %+v", name,
			x.State, x.Followed, x.Trips, x.Lost, x.Broken)
	}
	sum := 0.0
	for _, s := range x.Segments {
		sum += s.MidMean
	}
	if math.Abs(sum-x.MidMean) > 1e-9 {
		t.Errorf("%s: segments sum to %g s of a trip of %g s", name, sum, x.MidMean)
	}
	for _, g := range x.Groups {
		if len(g.Odd) > 0 {
			t.Errorf("%s: steps %v of %q are off the path", name, g.Odd, g.Steps)
		}
	}
}
