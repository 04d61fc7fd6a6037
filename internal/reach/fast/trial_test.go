package fast

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bigtcp"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

type onOff struct {
	on      atomic.Bool
	reread  int
	kept    atomic.Int32
	lapse   error // why the state cannot be kept
	through uint64
}

func (o *onOff) toggle(on bool) error { o.on.Store(on); return nil }

func (o *onOff) refresh(context.Context) error { o.reread++; return nil }

func (o *onOff) keep(context.Context, bool) error { o.kept.Add(1); return o.lapse }

func (o *onOff) taken(uint16) (uint64, bool, error) { return o.through, true, nil }

func TestTrialDuring(t *testing.T) {
	was := renewed
	renewed = time.Millisecond
	t.Cleanup(func() { renewed = was })
	o := &onOff{}
	tr := &Trial{to: o}
	visit := func(take bool) func(context.Context) error {
		return func(ctx context.Context) error {
			if take {
				o.through++
			}
			n := o.kept.Load()
			if !testwait.Met(patience, func() bool {
				return o.kept.Load() > n || ctx.Err() != nil
			}) {
				return errors.New("the state was not kept")
			}
			return ctx.Err()
		}
	}
	for _, c := range []struct {
		on, take bool
		fault    string
	}{
		{true, true, ""},
		{false, false, ""},
		{true, false, "no connection took the shortcut"},
		{false, true, "1 connection took the shortcut although"},
	} {
		err := tr.During(context.Background(), 80, c.on, visit(c.take))
		if (err == nil) != (c.fault == "") ||
			err != nil && !strings.Contains(err.Error(), c.fault) ||
			o.on.Load() != c.on {
			t.Errorf("%+v: %v, on is %t", c, err, o.on.Load())
		}
	}
	if o.reread == 0 {
		t.Error("the machine was never read again")
	}
	broken := errors.New("broken")
	breaks := func(context.Context) error { return broken }
	if err := tr.During(context.Background(), 80, false, breaks); !errors.Is(err, broken) {
		t.Error(err)
	}
	o.lapse = ErrOff
	if err := tr.During(context.Background(), 80, true, visit(true)); !errors.Is(err, ErrOff) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := tr.During(ctx, 80, true, visit(true)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestDialOf(t *testing.T) {
	for hosts, want := range map[string]string{
		"10.0.0.5:8080 127.0.0.1:8080":             "127.0.0.1:8080 of 2",
		"10.0.0.5:8080 [::]:8080 127.0.0.1:8080":   "[::1]:8080 of 2",
		"127.0.0.1:80 10.0.0.5:8080 10.0.0.6:8080": "10.0.0.5:8080 of 2",
		"127.0.0.1:80": "invalid AddrPort of 0",
	} {
		var c ports.Container
		for i, h := range strings.Fields(hosts) {
			c.Published = append(c.Published, ports.Published{Proto: "tcp", Port: uint16(i + 1),
				Host: netip.MustParseAddrPort(h)})
		}
		dial, inside := dialOf(&ports.Facts{Containers: []ports.Container{{}, c}}, 8080)
		if got := fmt.Sprintf("%s of %d", dial, inside); got != want {
			t.Errorf("%s: %s, want %s", hosts, got, want)
		}
	}
}

// A trial leaves fast off, also after an interrupt. If somebody else turns it off, the trial ends.
func TestBesideTrial(t *testing.T) {
	if err := bigtcp.Supported(); err != nil {
		t.Skip(err)
	}
	toll := pathtest.Toll(t)
	withEngine(t)
	container(t, "web", "-p 8080:80")
	links := sizes(t)
	check := func(on bool) {
		t.Helper()
		if now := sizes(t); IsOn() != on || (fmt.Sprint(now) == fmt.Sprint(links)) == on {
			t.Errorf("on is %t, links are %v, and were %v", IsOn(), now, links)
		}
	}
	both := Choice{Ports: []uint16{8080}, Parts: []Part{Connect, Links}}
	at, inside, err := Published(context.Background(), 8080)
	if err != nil || at.String() != "127.0.0.1:8080" || inside != 80 {
		t.Fatalf("%v, %d, %v", at, inside, err)
	}
	begin := func(want Choice) *Trial {
		t.Helper()
		tr, err := NewTrial(context.Background(), want)
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	tr := begin(both)
	for _, on := range []bool{true, false, true} {
		n := taken(t)
		if err := tr.During(context.Background(), 8080, on, func(context.Context) error {
			if got := dial(at.String()); !strings.HasPrefix(got, "web for ") {
				return errors.New(got)
			}
			if now := sizes(t); (fmt.Sprint(now) == fmt.Sprint(links)) == on {
				t.Errorf("on is %t, links are %v", on, now)
			}
			return nil
		}); err != nil || (taken(t) > n) != on {
			t.Errorf("on is %t: %v, %d took the shortcut", on, err, taken(t)-n)
		}
	}
	// Only the interrupt ends this visit.
	ctx, cancel := context.WithCancel(context.Background())
	err = tr.During(ctx, 8080, true, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if err := errors.Join(err, tr.Close()); !errors.Is(err, context.Canceled) {
		t.Errorf("it was interrupted: %v", err)
	}
	check(false)
	// Somebody else turns it off during a visit, and may turn it on again.
	tr = begin(both)
	err = tr.During(context.Background(), 8080, true, func(context.Context) error {
		return turnOff()
	})
	if err != nil && !errors.Is(err, ErrOff) {
		t.Errorf("it was turned off: %v", err)
	}
	err = tr.During(context.Background(), 8080, true, func(context.Context) error { return nil })
	if !errors.Is(err, ErrOff) {
		t.Errorf("it was turned off: %v", err)
	}
	check(false)
	f := turnOn(t)
	if err := tr.Close(); err != nil || !IsOn() {
		t.Errorf("somebody else's fast was turned off: %v", err)
	}
	if _, err := NewTrial(context.Background(), both); !errors.Is(err, ErrOn) {
		t.Error(err)
	}
	_ = f.Close()
	_ = turnOff()
	const line = " fast on 8080 --measure --parts connect,links "
	got, code := measured(t, toll+line+"--rounds 6 --lease 1h")
	check(code == 0)
	_ = turnOff()
	if fmt.Sprint(got.metrics("fast-8080")) != "[connecting]" || len(got.Failed) > 0 {
		t.Errorf("%+v", got)
	}
	run(t, toll+" fast on 8080 --measure --dry-run")
	check(false)
	// After SIGKILL, the lease or toll clean ends fast.
	for _, sig := range []os.Signal{os.Interrupt, os.Kill} {
		args := strings.Fields(line + "--budget 1h --precision 0.0001")
		cmd := exec.Command(toll, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, patience, "links are raised", func() bool {
			return fmt.Sprint(sizes(t)) != fmt.Sprint(links)
		})
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if sig == os.Kill {
			testwait.Until(t, patience, "toll clean turns fast off", func() bool {
				run(t, toll+" clean")
				return !IsOn()
			})
		} else if code := cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("interrupted: exit %d", code)
		}
		check(false)
	}
	// Connections that do not take the shortcut measure nothing.
	got, code = measured(t, toll+" fast on 8080 --measure=run --client true --rounds 6")
	check(false)
	if code != 4 || len(got.Failed) != 1 ||
		!strings.Contains(fmt.Sprint(got.Failed), "no connection took the shortcut") {
		t.Errorf("exit %d, %+v", code, got)
	}
}

type report struct {
	Cells []struct {
		Mode, Dial string
		Metrics    map[string]struct{ Ratio *struct{ Verdict string } }
	}
	Failed []map[string]any
}

// metrics omits what the client's process and connections report.
func (r report) metrics(cell string) (out []string) {
	known := []string{"connecting", "request", "throughput", "elapsed", "requests", "connect_time",
		"first_token_p50", "gap_p50", "response_time", "latency_p50"}
	for _, c := range r.Cells {
		for name, m := range c.Metrics {
			if c.Mode == cell && m.Ratio != nil && slices.Contains(known, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

func measured(t *testing.T, line string) (got report, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	if !testwait.Met(patience, func() bool {
		out.Reset()
		errOut.Reset()
		cmd := exec.Command("sh", "-c", line+" --format json")
		cmd.Stdout, cmd.Stderr = &out, &errOut
		_ = cmd.Run() // 4: fast was turned off again
		code = cmd.ProcessState.ExitCode()
		return json.Unmarshal(out.Bytes(), &got) == nil
	}) {
		t.Fatalf("%s: %s%s", line, out.String(), errOut.String())
	}
	if strings.Contains(out.String()+errOut.String(), "hunter22") {
		t.Errorf("%s: the password is shown", line)
	}
	if code != 0 && code != 4 {
		t.Errorf("%s: exit %d, %s", line, code, errOut.String())
	}
	if IsOn() != (code == 0) {
		t.Errorf("%s: exit %d, and on is %t: %s", line, code, IsOn(), errOut.String())
	}
	return got, code
}
