package fast

import (
	"context"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// watching runs a Watcher until the test ends. said returns the lines with text that it has
// reported.
func watching(t *testing.T, f *Fast, lease time.Duration) (said func(text string) []string) {
	t.Helper()
	var mu sync.Mutex
	var lines []string
	w := Watcher{Lease: lease, Say: func(s string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, s)
	}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, f) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func(text string) []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.DeleteFunc(slices.Clone(lines), func(s string) bool {
			return !strings.Contains(s, text)
		})
	}
}

// An outage of the engine is reported once, however long it takes.
func TestBesideOutage(t *testing.T) {
	e := withEngine(t)
	container(t, "web", "-p 127.0.0.1:8080:80 --restart always")
	said := watching(t, turnOn(t), time.Hour)
	for outage := 1; outage <= 2; outage++ {
		testwait.Until(t, patience, "a shortcut", func() bool {
			return len(said("1 shortcut")) == outage && len(said("1 shortcuts")) == 0
		})
		e.Stop()
		asked := dying(t)
		testwait.Until(t, patience, "the watcher tries again and again", func() bool {
			return asked.Load() > 20
		})
		if n := len(said("event stream ended")); n != outage {
			t.Errorf("%d outages are reported %d times: %q", outage, n, said(""))
		}
		e.Start(t)
		n := taken(t)
		testwait.Until(t, patience, "clients take the shortcut again", func() bool {
			return strings.HasPrefix(dial("127.0.0.1:8080"), "web") && taken(t) > n
		})
	}
}

// dying takes the engine's socket and closes all connections, which it counts.
func dying(t *testing.T) *atomic.Int32 {
	t.Helper()
	socket := strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	_ = os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	l.(*net.UnixListener).SetUnlinkOnClose(false) // the next engine replaces it
	n := &atomic.Int32{}
	go testnet.Accept(l, func(net.Conn) { n.Add(1) })
	return n
}

// A port gets its shortcut when a server listens, and loses it when none does any more.
func TestBesideSilent(t *testing.T) {
	withEngine(t)
	container(t, "web", "-p 8080:80 -p 127.0.0.1:8081:81")
	f := turnOn(t)
	left := update(t, f)
	if len(left) != 1 || left[0].Host.Port() != 8081 ||
		!strings.HasPrefix(left[0].Why, "nothing listens on 172.17.0.") ||
		!strings.HasSuffix(left[0].Why, ":81 in its container") {
		t.Errorf("%+v", left)
	}
	watching(t, f, time.Hour)
	run(t, "docker exec -d web /self serve late 81")
	testwait.Until(t, patience, "a server that starts later is reached by a shortcut",
		func() bool {
			n := taken(t)
			return strings.HasPrefix(dial("127.0.0.1:8081"), "late") && taken(t) > n
		})
}

// In a time namespace the lease cannot be compared with the kernel's clock.
func TestBesideTimeNamespace(t *testing.T) {
	toll := pathtest.Toll(t)
	const unshare = "unshare --time --monotonic 86400 --fork "
	if out, err := exec.Command("sh", "-c", unshare+"true").CombinedOutput(); err != nil {
		t.Skipf("no time namespaces: %s", out)
	}
	withEngine(t)
	container(t, "web", "-p 8080:80")
	turnOn(t)
	for _, command := range []string{"on 8080", "on 8080 --parts links", "watch", "status",
		"expire"} {
		out, err := exec.Command("sh", "-c",
			"timeout 20 "+unshare+toll+" fast "+command).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "time namespace") {
			t.Errorf("toll fast %s: %v: %s", command, err, out)
		}
	}
	if out, err := exec.Command("sh", "-c", unshare+toll+" clean").CombinedOutput(); err != nil {
		t.Errorf("toll clean: %v: %s", err, out)
	}
	s, err := Look(context.Background())
	if err != nil || s.State != On || s.Lease > time.Hour.Seconds() {
		t.Errorf("%+v, %v", s, err)
	}
	run(t, unshare+toll+" fast off")
	if IsOn() {
		t.Error("it is still on")
	}
}

// An interrupt leaves fast on or off, and no directory if it is off.
func TestBesideInterrupted(t *testing.T) {
	toll := pathtest.Toll(t)
	withEngine(t)
	container(t, "web", "-p 8080:80")
	there := func() bool {
		_, err := os.Stat(journal.Machine)
		return err == nil
	}
	for i := range 20 {
		cmd := exec.Command(toll, "fast", "on", "8080")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patience); !there() && time.Now().Before(end); {
			time.Sleep(time.Duration(i) * 10 * time.Microsecond)
		}
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if there() && !IsOn() {
			t.Errorf("try %d: %s stays although fast is off", i, journal.Machine)
		}
		_, _ = TurnOff()
		_ = journal.RemoveDir(journal.Machine)
	}
}

// After an error the choice is what it was.
func TestBesideEnableFails(t *testing.T) {
	withEngine(t)
	before := Choice{Ports: []uint16{8080}}
	if err := Enable(context.Background(), before, time.Hour); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, want := range []Choice{{Ports: []uint16{9090}}, {All: true}} {
		if err := Enable(ctx, want, time.Hour); err == nil {
			t.Errorf("%+v: no error", want)
		}
		if c, err := chosen(); err != nil || c.All || !slices.Equal(c.Ports, before.Ports) {
			t.Errorf("after %+v: %+v, %v", want, c, err)
		}
	}
}

// Few local ports are enough, or are the reason that is named.
func TestBesideFewPorts(t *testing.T) {
	withEngine(t)
	container(t, "web", "-p 8080:80")
	f := turnOn(t)
	const file = "/proc/sys/net/ipv4/ip_local_port_range"
	old := run(t, "cat "+file)
	t.Cleanup(func() { run(t, "echo "+old+" > "+file) })
	for ports, why := range map[string]string{
		"40000 40001": "too few local ports for clients to try it: 2 of " +
			"net.ipv4.ip_local_port_range are free, and 3 are needed",
		"40000 40002": "", "40000 40010": "", "40000 40020": "", "40000 40040": "",
	} {
		run(t, "echo "+ports+" > "+file)
		left := update(t, f)
		if (len(left) == 0) != (why == "") ||
			len(left) > 0 && !strings.Contains(left[0].Why, why) {
			t.Errorf("%s: %+v", ports, left)
		}
	}
}

// docker-proxy serves an IPv6 address that is published for a network without IPv6.
func TestBesideOtherFamily(t *testing.T) {
	withEngine(t)
	run(t, "ip addr add 2001:db8::10/128 dev lo nodad")
	t.Cleanup(func() { run(t, "ip addr del 2001:db8::10/128 dev lo") })
	container(t, "web", "-p [2001:db8::10]:8015:80")
	c, err := net.Dial("tcp", "[2001:db8::10]:8015")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := greeting(c); !strings.HasPrefix(got, "web for ") || proxied(t) == 0 {
		t.Fatalf("docker-proxy does not serve it: %s", got)
	}
	left := update(t, turnOn(t))
	const why = "it is published on 2001:db8::10 only; toll fast redirects only clients that " +
		"dial 127.0.0.1 or ::1"
	if len(left) != 1 || left[0].Why != why {
		t.Errorf("%+v", left)
	}
}
