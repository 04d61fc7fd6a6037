package observe

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// relayAs is the environment's variable that makes TestRelays a relay: its address, its server's, and
// for how long it spins and sleeps before it passes bytes on.
const relayAs = "TOLL_TEST_RELAY"

// TestRelays is the process of TestRelayIsDivided.
func TestRelays(t *testing.T) {
	var at, to string
	var spins, sleeps time.Duration
	if n, _ := fmt.Sscan(os.Getenv(relayAs), &at, &to, &spins, &sleeps); n < 4 {
		t.Skip("other tests start it")
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("listens")
	pass := func(from, to net.Conn) {
		runtime.LockOSThread()
		for b := make([]byte, 4096); ; {
			n, err := from.Read(b)
			if err != nil {
				to.Close()
				return
			}
			for until := threadTime() + spins; threadTime() < until; {
			}
			if sleeps > 0 {
				time.Sleep(sleeps)
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
	}
	testnet.Accept(l, func(c net.Conn) {
		up, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		go pass(up, c)
		pass(c, up)
	})
}

// threadTime returns the CPU time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// follows makes n requests over a route, one after the other, and follows them.
func follows(t testing.TB, m *machine, at string, n int) *sample.Trace {
	t.Helper()
	return followsAsking(t, m, at, n, func(c net.Conn, r *bufio.Reader) error {
		_, err := io.WriteString(c, "request\n")
		if err == nil {
			_, err = r.ReadString('\n')
		}
		return err
	})
}

// followsAsking is follows of requests that a function makes, and whose replies it reads.
func followsAsking(t testing.TB, m *machine, at string, n int,
	ask func(net.Conn, *bufio.Reader) error) *sample.Trace {
	t.Helper()
	way, err := Find(t.Context(), m.pid, func() (uint16, error) {
		c, _, err := m.dial(t.Context(), "tcp", at)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		time.Sleep(50 * ms)
		return uint16(c.LocalAddr().(*net.TCPAddr).Port), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer way.Close()
	got, err := way.Follow(1, func() (all []tokens.Exchange, err error) {
		c, _, err := m.dial(t.Context(), "tcp", at)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		r := bufio.NewReader(c)
		for i := range n + 5 {
			x := tokens.Exchange{Local: uint16(c.LocalAddr().(*net.TCPAddr).Port),
				Sent: time.Now().UnixNano()}
			if err := ask(c, r); err != nil {
				return nil, err
			}
			if x.Read = time.Now().UnixNano(); i >= 5 { // the relay's threads are known then
				all = append(all, x)
			}
		}
		tokens.Slot(all, 1)
		return all, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestRelayIsDivided plants CPU time and sleep in a relay, and a CPU limit.
func TestRelayIsDivided(t *testing.T) {
	needsWrites(t)
	for name, tt := range map[string]struct {
		spins, sleeps time.Duration // each way
		limited       bool
		part          sample.Part
	}{
		"spins":        {spins: ms / 5, part: sample.PartRelayed},
		"sleeps":       {sleeps: 2 * ms, part: sample.PartRelayedAsleep},
		"short of CPU": {spins: ms, limited: true, part: sample.PartRelayedWait},
	} {
		t.Run(name, func(t *testing.T) {
			m, group := newMachine(t), ""
			if tt.limited {
				group = limited(t) // which outlives the relay
			}
			m.serve(t, "127.0.0.1:6000", oneLine)
			relay := exec.Command("/proc/self/exe", "-test.run=^TestRelays$")
			relay.Env = append(os.Environ(), fmt.Sprintf("%s=127.0.0.1:6001 127.0.0.1:6000 %d %d",
				relayAs, tt.spins, tt.sleeps))
			out, err := relay.StdoutPipe()
			if err == nil {
				err = m.Start(relay)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = relay.Process.Kill()
				_ = relay.Wait()
			})
			if _, err := fmt.Fscanln(out, new(string)); err != nil {
				t.Fatal(err)
			}
			if tt.limited {
				err := os.WriteFile(filepath.Join(group, "cgroup.procs"),
					fmt.Append(nil, relay.Process.Pid), 0)
				if err != nil {
					t.Fatal(err)
				}
			}
			testwait.Unhindered(t, patience, func(u testing.TB) {
				got := follows(u, m, "127.0.0.1:6001", 100)
				relayPart(u, got, tt.part, 2*(tt.spins+tt.sleeps), tt.limited)
			})
		})
	}
}

// oneLine answers each line with a line.
func oneLine(c net.Conn) {
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if _, err := io.WriteString(c, line); err != nil {
			return
		}
	}
}

// relayPart checks that a part of a relay has what was planted.
func relayPart(t testing.TB, got *sample.Trace, part sample.Part, planted time.Duration, limited bool) {
	t.Helper()
	if got.Followed != 100 {
		t.Fatalf("%+v", got)
	}
	var mid, tail, whole float64
	for _, g := range got.Segments {
		whole += g.Tail
		if g.Part == part {
			mid, tail = mid+g.MidMean, tail+g.Tail
		}
	}
	switch want := planted.Seconds(); {
	case limited && (tail < whole/2 || len(got.Stopped) != 1 || got.Stopped[0].For < 0.05):
		t.Errorf("%g of %g s around the p99, stopped: %+v", tail, whole, got.Stopped)
	case !limited && (mid < want || mid > 1.15*want):
		t.Errorf("%s has %g s, planted was %g: %+v", part, mid, want, got.Segments)
	case !limited && len(got.Stopped) > 0:
		t.Errorf("stopped: %+v", got.Stopped)
	}
}
