package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

type script = func(path.Spec, program.Request, int) program.State

func programs(rounds int) plan.Request {
	r := request()
	r.Loads = []sample.Load{{Kind: "exec", Options: sample.ExecOptions{Program: &sample.Program{
		Server:  "serve on {port}",
		Client:  "ask {host} {port} for {seconds}",
		Ready:   program.ReadyTCP,
		Seconds: 1,
		Timeout: 5,
		Gauges: []sample.Gauge{{Name: "latency", Unit: "s", Scale: 1e-3, Lower: true,
			Pattern: `latency (\S+)`}}}}, Window: 1}}
	r.Rounds = rounds
	return r
}

func latency(ms float64) program.State {
	return program.State{Ended: true, Known: true, Elapsed: 2 * time.Second, CPU: time.Second,
		Stdout: fmt.Sprintf("latency %g\n", ms)}
}

func printing(ms func(s path.Spec) float64) script {
	return func(s path.Spec, o program.Request, _ int) program.State {
		if o.Op == program.Wait {
			return latency(ms(s))
		}
		return program.State{}
	}
}

func steady(path.Spec) float64 { return 5 }

// wrong gives another reply to one request of the second visit to the bridge.
func wrong(op program.Op, ready bool, st program.State) script {
	well := printing(steady)
	return func(s path.Spec, o program.Request, n int) program.State {
		if s == bridgeSpec && n == 1 && o.Op == op && (o.Ready != "") == ready {
			return st
		}
		return well(s, o, n)
	}
}

func failures(f *sample.File) (out []sample.Visit) {
	for _, v := range f.Visits {
		if v.Failure != "" || !v.Witness.OK {
			out = append(out, v)
		}
	}
	return out
}

func TestProgramsValuesReachTheVisits(t *testing.T) {
	var commands []string
	served := time.Duration(0)
	well := printing(func(s path.Spec) float64 {
		return map[bool]float64{true: 5, false: 8}[s == hostSpec]
	})
	b := &fake.Builder{Program: func(s path.Spec, o program.Request, n int) program.State {
		switch o.Op {
		case program.Start:
			commands = append(commands, fmt.Sprintf(
				"%s|%s|%d|%s", o.Command, o.Ready, o.Port, o.Limit))
		case program.Read:
			served += 250 * time.Millisecond
			return program.State{CPU: served, Known: true}
		case program.Stop:
			return program.State{Ended: true, Stdout: "served\n", Stderr: "\x1b[1mwell\n"}
		}
		return well(s, o, n)
	}}
	r := try(t, context.Background(), b, programs(6), nil)
	if r.err != nil || r.end.Rounds != 6 {
		t.Fatalf("end %+v, %v", r.end, r.err)
	}
	for _, v := range r.file.Visits {
		want := 5e-3
		if r.file.Header.Plan.Cells[v.Cell].Mode == "bridge" {
			want = 8e-3
		}
		if v.Failure != "" || !v.Witness.OK || math.Abs(v.Values["latency"]-want) > 1e-12 ||
			v.Values[sample.Elapsed] != 2 {
			t.Errorf("visit %+v", v)
		}
		if v.Client.CPU != 1 || v.Server.CPU != 0.25 || v.Client.Window != 2 {
			t.Errorf("client %+v, server %+v", v.Client, v.Server)
		}
		if v.Output == nil || !strings.HasPrefix(v.Output.Client, "latency ") ||
			v.Output.Server != "served\n\n\\x1b[1mwell\n" {
			t.Errorf("output %+v", v.Output)
		}
		if len(v.Hops) != 1 || v.Hops[0].After.Sub(v.Hops[0].Before).ForwardBytes == 0 {
			t.Errorf("hops %+v", v.Hops)
		}
	}
	for i, want := range []string{"serve on 5201|tcp|5201|5s", "ask 192.0.2.1 5201 for 1||0|5s"} {
		if commands[i] != want {
			t.Errorf("order %d is %q, want %q", i, commands[i], want)
		}
	}
	if len(r.report.Failed) > 0 || len(r.report.Cells) != 2 {
		t.Fatalf("%d cells, failed %+v", len(r.report.Cells), r.report.Failed)
	}
	for _, c := range r.report.Cells {
		if m := c.Metrics["latency"]; c.Mode == "bridge" &&
			(m.Ratio == nil || math.Abs(m.Ratio.Median-1.6) > 1e-9 || m.Ratio.Verdict != "worse") {
			t.Errorf("%s: %+v", c.Mode, m)
		}
	}
}

func TestKeepersAreStartedOncePerPath(t *testing.T) {
	b := &fake.Builder{Program: printing(steady)}
	r := try(t, context.Background(), b, programs(4), nil)
	if r.err != nil || len(failures(r.file)) > 0 {
		t.Fatal(r.err, failures(r.file))
	}
	if len(b.Keepers) != 2 || b.Keepers[hostSpec] != 2 || b.Keepers[bridgeSpec] != 2 ||
		b.Kept != 0 {
		t.Errorf("keepers started: %v; left: %d", b.Keepers, b.Kept)
	}
}

func TestFailingProgramFailsItsVisitOnly(t *testing.T) {
	for _, c := range []struct {
		name   string
		script script
		want   string
		output sample.Output
	}{
		{"server-never-ready", wrong(program.Start, true,
			program.State{Error: "it was not ready within 5s", Stderr: "cannot bind\n"}),
			"server: it was not ready within 5s; it said: cannot bind",
			sample.Output{Server: "cannot bind\n"}},
		{"client-cannot-be-started", wrong(program.Start, false,
			program.State{Error: "start /bin/sh: no such file"}),
			"client: start /bin/sh: no such file", sample.Output{}},
		{"client-fails", wrong(program.Wait, false,
			program.State{Ended: true, Exit: "exit status 1", Stdout: "a\n",
				Stderr: "refused\nby all\n"}),
			"client: it failed (exit status 1); it said: refused; by all",
			sample.Output{Client: "a\n\nrefused\nby all\n"}},
		{"server-dies", wrong(program.Read, false,
			program.State{Ended: true, Exit: "signal: killed", Stderr: "segfault\n"}),
			"server: it ended before it was stopped (signal: killed); it said: segfault",
			sample.Output{Client: "latency 5\n"}},
		{"server-ends-with-an-error", wrong(program.Read, false,
			program.State{Ended: true, Exit: "exit status 2"}),
			"server: it ended before it was stopped (exit status 2)",
			sample.Output{Client: "latency 5\n"}},
		{"daemon-dies", wrong(program.Read, false,
			program.State{Ended: true, Orphan: "signal: killed"}),
			"server: the process that it left running ended (signal: killed)",
			sample.Output{Client: "latency 5\n"}},
		{"server-and-client-die", func(s path.Spec, o program.Request, n int) program.State {
			if o.Op == program.Read {
				return wrong(program.Read, false,
					program.State{Ended: true, Exit: "signal: killed"})(s, o, n)
			}
			return wrong(program.Wait, false,
				program.State{Ended: true, Exit: "exit status 1", Stderr: "reset\n"})(s, o, n)
		}, "server: it ended before it was stopped (signal: killed); " +
			"client: it failed (exit status 1); it said: reset",
			sample.Output{Client: "reset\n"}},
		{"client-hangs", wrong(program.Wait, false,
			program.State{Error: "it did not end within 5s", Stdout: "connecting\n"}),
			"client: it did not end within 5s; it said: connecting",
			sample.Output{Client: "connecting\n"}},
		{"no-metric", wrong(program.Wait, false, program.State{Ended: true, Stdout: "done\n"}),
			`client: no metric latency: nothing in the output matches latency (\S+); it said: done`,
			sample.Output{Client: "done\n"}},
		{"metric-is-no-number", wrong(program.Wait, false,
			program.State{Ended: true, Stdout: "latency ∞\n"}),
			`client: metric latency: "∞" is not a number; it said: latency ∞`,
			sample.Output{Client: "latency ∞\n"}},
		{"server-cannot-be-read", wrong(program.Read, false, program.State{Error: "no such order"}),
			"server: no such order", sample.Output{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &fake.Builder{Program: c.script}
			r := try(t, context.Background(), b, programs(6), nil)
			if r.err != nil || r.end.Reason != sample.EndedByRounds || len(r.report.Failed) > 0 {
				t.Fatalf("end %+v, %v, failed %+v", r.end, r.err, r.report.Failed)
			}
			bad := failures(r.file)
			if len(bad) != 1 || bad[0].Round != 1 ||
				r.file.Header.Plan.Cells[bad[0].Cell].Mode != "bridge" {
				t.Fatalf("failed: %+v", bad)
			}
			if bad[0].Failure != c.want {
				t.Errorf("failure %q, want %q", bad[0].Failure, c.want)
			}
			if bad[0].Output == nil || *bad[0].Output != c.output {
				t.Errorf("output %+v, want %+v", bad[0].Output, c.output)
			}
			if b.Keepers[bridgeSpec] != 2 || b.Kept != 0 {
				t.Errorf("keepers started: %v; left: %d", b.Keepers, b.Kept)
			}
		})
	}
}

func TestDeadKeeperIsReplaced(t *testing.T) {
	b := &fake.Builder{Program: printing(steady), Die: func(s path.Spec, n int) bool {
		return s == bridgeSpec && n == 1
	}}
	r := try(t, context.Background(), b, programs(6), nil)
	bad := failures(r.file)
	if r.err != nil || len(bad) != 1 ||
		bad[0].Failure != "client: the worker died; client: signal: killed" {
		t.Errorf("%v, failed %+v", r.err, bad)
	}
	if b.Keepers[hostSpec] != 2 || b.Keepers[bridgeSpec] != 4 || b.Kept != 0 {
		t.Errorf("keepers started: %v; left: %d", b.Keepers, b.Kept)
	}
}

// After one program has hung, no other that may hang is started without the time for that.
func TestProgramsThatHangEndWithTheBudget(t *testing.T) {
	const timeout = 5.
	var clock engine.Clock
	b := &fake.Builder{Program: func(_ path.Spec, o program.Request, _ int) program.State {
		if o.Op != program.Wait {
			return program.State{}
		}
		_ = clock.Sleep(context.Background(), clock.Now()+o.Limit.Nanoseconds())
		return program.State{Error: "it did not end"}
	}}
	req := programs(0)
	req.Budget = timeout * 1.5
	r := try(t, context.Background(), b, req, func(c *engine.Config) { clock = c.Clock })
	if r.err != nil || r.end.Reason != sample.EndedByBudget || r.end.Elapsed > req.Budget {
		t.Errorf("%v, end %+v with a budget of %g s", r.err, r.end, req.Budget)
	}
	if f := failures(r.file); len(f) != 1 || f[0].Failure != "client: it did not end" {
		t.Errorf("%+v", f)
	}
}

func TestClientIsStartedAgainWhileItsServerIsBusy(t *testing.T) {
	busy := map[path.Spec]int{}
	well := printing(steady)
	served := 0
	b := &fake.Builder{Program: func(s path.Spec, o program.Request, n int) program.State {
		switch {
		case o.Op == program.Start && o.Ready != "":
			served++
		case o.Op == program.Wait && busy[s] < 2:
			busy[s]++
			return program.State{Ended: true, Exit: "exit status 1", Stderr: "busy, try again\n"}
		case o.Op == program.Wait:
			busy[s] = 0
		}
		return well(s, o, n)
	}}
	req := programs(2)
	workload.ExecOf(req.Loads[0]).Program.Again = "busy"
	r := try(t, context.Background(), b, req, nil)
	if r.err != nil || len(failures(r.file)) > 0 || served != len(r.file.Visits) {
		t.Fatalf("%v, %d servers of %d visits, failed %+v", r.err, served, len(r.file.Visits),
			failures(r.file))
	}
	for _, v := range r.file.Visits {
		if math.Abs(v.Values["latency"]-5e-3) > 1e-12 || v.Output.Client != "latency 5\n" {
			t.Errorf("%v, %+v", v.Values, v.Output)
		}
	}
}

// With a budget and a number of rounds, whichever comes first ends the run.
func TestRoundsAndBudget(t *testing.T) {
	for _, c := range []struct {
		name   string
		rounds int
		bound  bool
		reason string
		least  int
	}{
		{"rounds-first", 2, true, sample.EndedByRounds, 2},
		{"budget-first", 1000, true, sample.EndedByBudget, 3},
		{"rounds-only", 20, false, sample.EndedByRounds, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			var clock engine.Clock
			well := printing(steady)
			b := &fake.Builder{Program: func(s path.Spec, o program.Request, n int) program.State {
				if o.Op == program.Wait {
					_ = clock.Sleep(context.Background(), clock.Now()+time.Second.Nanoseconds())
				}
				return well(s, o, n)
			}}
			req := programs(c.rounds)
			req.Budget, req.Bound = 15, c.bound
			r := try(t, context.Background(), b, req, func(c *engine.Config) { clock = c.Clock })
			if r.err != nil || r.end.Reason != c.reason || r.end.Rounds < c.least ||
				c.bound && r.end.Elapsed > req.Budget {
				t.Errorf("end %+v, %v", r.end, r.err)
			}
		})
	}
}

func TestProgramsAreStoppedAfterTheirVisit(t *testing.T) {
	running := map[path.Spec]int{}
	well := printing(steady)
	b := &fake.Builder{Program: func(s path.Spec, o program.Request, n int) program.State {
		switch o.Op {
		case program.Start:
			running[s]++
			for other, k := range running {
				if other != s && k > 0 {
					t.Errorf("visit %d: %d ends on %s were not stopped", n, k, other)
				}
			}
		case program.Stop:
			running[s]--
		}
		return well(s, o, n)
	}}
	if r := try(t, context.Background(), b, programs(3), nil); r.err != nil ||
		len(failures(r.file)) > 0 {
		t.Error(r.err, failures(r.file))
	}
}

func TestProgramsThatGoAnotherWayAreNotWitnessed(t *testing.T) {
	b := &fake.Builder{Program: printing(steady), Bypass: func(s path.Spec, _ int) bool {
		return s == bridgeSpec
	}}
	r := try(t, context.Background(), b, programs(6), nil)
	if r.err != nil || len(r.report.Failed) != 1 {
		t.Fatalf("%v, failed %+v", r.err, r.report.Failed)
	}
	if f := r.report.Failed[0]; f.Mode != "bridge" ||
		f.Evidence != "veth fake0 (nowhere): saw 0 packets to the server and 0 back" {
		t.Errorf("failed %+v", f)
	}
	for _, c := range r.report.Cells {
		if c.Mode == "bridge" {
			t.Error("an unwitnessed cell has a row")
		}
	}
}

func TestInterruptDoesNotWaitForPrograms(t *testing.T) {
	for _, c := range []struct {
		name string
		op   program.Op
	}{{"server-gets-ready", program.Start}, {"client-runs", program.Wait}} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			well := printing(steady)
			b := &fake.Builder{Program: func(s path.Spec, o program.Request, n int) program.State {
				if s == bridgeSpec && n == 2 && o.Op == c.op {
					cancel(errors.New("stop"))
					<-ctx.Done()
				}
				return well(s, o, n)
			}}
			r := try(t, ctx, b, programs(1000), func(c *engine.Config) { c.Judge = nil })
			if r.err != nil || r.end.Reason != sample.EndedByInterrupt || r.end.Rounds != 2 {
				t.Errorf("end %+v, %v", r.end, r.err)
			}
			if len(failures(r.file)) > 0 || b.Kept != 0 {
				t.Errorf("failed %+v; keepers left: %d", failures(r.file), b.Kept)
			}
		})
	}
}

// The visit before left the server's ports in TIME_WAIT.
func TestPathsAreDrainedForPrograms(t *testing.T) {
	drained := 0
	b := &fake.Builder{Program: printing(steady), Headroom: func(path.Spec) sample.Headroom {
		drained++
		return sample.Headroom{}
	}}
	r := try(t, context.Background(), b, programs(2), nil)
	if r.err != nil || len(failures(r.file)) > 0 || drained != len(r.file.Visits) {
		t.Errorf("drained %d times in %d visits: %v", drained, len(r.file.Visits), r.err)
	}
}

func TestElapsedIsTheMetricOfProgramsWithoutOne(t *testing.T) {
	q := programs(6)
	workload.ExecOf(q.Loads[0]).Program.Gauges = nil
	r := try(t, context.Background(), &fake.Builder{Program: printing(steady)}, q, nil)
	if r.err != nil || len(failures(r.file)) > 0 || len(r.report.Cells) != 2 {
		t.Fatal(r.err, r.report)
	}
	for _, c := range r.report.Cells {
		if m := c.Metrics[sample.Elapsed]; m.Median != 2 || m.Unit != "s" {
			t.Errorf("%s: %+v", c.Mode, m)
		}
	}
}

func TestOutputIsKeptInPart(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	b := &fake.Builder{Program: func(_ path.Spec, o program.Request, _ int) program.State {
		switch o.Op {
		case program.Wait:
			return program.State{Ended: true, Stdout: long + "latency 3\n",
				Stderr: "\x00\xff" + long}
		case program.Stop:
			return program.State{Ended: true, Stdout: long}
		}
		return program.State{}
	}}
	r := try(t, context.Background(), b, programs(1), nil)
	for _, v := range r.file.Visits {
		const most = 2*4<<10 + 10
		if v.Failure != "" || len(v.Output.Client) > most || len(v.Output.Server) > most ||
			!strings.Contains(v.Output.Client, "latency 3") {
			t.Errorf("failure %q, %d and %d bytes kept", v.Failure, len(v.Output.Client),
				len(v.Output.Server))
		}
	}
}
