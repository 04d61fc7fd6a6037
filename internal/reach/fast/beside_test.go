package fast

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const patience = 60 * time.Second

func turnOn(t *testing.T) *Fast {
	t.Helper()
	f, err := TurnOn(Choice{All: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	update(t, f)
	return f
}

func update(t *testing.T, f *Fast) []Refusal {
	t.Helper()
	left, err := f.Update(context.Background(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return left.Ports
}

func turnOff() error {
	kept, err := TurnOff()
	if len(kept) > 0 {
		err = errors.Join(err, fmt.Errorf("kept: %v", kept))
	}
	return err
}

func taken(t *testing.T) (n uint64) {
	t.Helper()
	s, err := Look(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Shortcuts {
		n += r.Taken
	}
	return n
}

func proxied(t *testing.T) (n int) {
	t.Helper()
	out, _ := exec.Command("pidof", "docker-proxy").Output() // fails if none runs
	for _, pid := range strings.Fields(string(out)) {
		id, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		conns, _ := sock.Of(id)
		n += len(conns)
	}
	return n
}

// Clients reach the same server, which sees the same client as before, and docker-proxy takes no
// part. Afterwards nothing is left.
func TestBesideShortcut(t *testing.T) {
	withEngine(t)
	container(t, "web", "-p 8080:80 -p 127.0.0.1:8081:80 -p 9000:90/udp")
	container(t, "mate", "")
	dials := []string{"127.0.0.1:8080", "[::1]:8080", "127.0.0.1:8081"}
	before := map[string]string{}
	for _, d := range dials {
		if before[d] = dial(d); !strings.HasPrefix(before[d], "web for ") {
			t.Fatalf("%s: %s", d, before[d])
		}
	}
	pins, mounts := run(
		t,
		"find /run /sys/fs/bpf -path /run/s -prune -o -path /run/containerd -prune -o "+
			"-print | sort"), run(t, "cat /proc/self/mounts")
	f := turnOn(t)
	for i, d := range dials {
		c, err := net.Dial("tcp", d)
		if err != nil {
			t.Fatal(err)
		}
		if got := greeting(c); got != before[d] {
			t.Errorf("%s: %q, and by docker-proxy %q", d, got, before[d])
		}
		if c.RemoteAddr().String() != d || !c.LocalAddr().(*net.TCPAddr).IP.IsLoopback() {
			t.Errorf("%s: from %s to %s", d, c.LocalAddr(), c.RemoteAddr())
		}
		if n := proxied(t); n != 0 {
			t.Errorf("%s: docker-proxies have %d connections", d, n)
		}
		c.Close()
		if n := taken(t); n != uint64(i+1) {
			t.Errorf("%s: %d took a shortcut", d, n)
		}
	}
	gateway := strings.TrimPrefix(before[dials[0]], "web for ")
	n := taken(t)
	if got := run(t, "docker exec mate /self dial "+gateway+":8080"); !strings.HasPrefix(got,
		"web for ") {
		t.Errorf("a container: %s", got)
	}
	if got := dial(gateway + ":8080"); !strings.HasPrefix(got, "web for ") {
		t.Errorf("the machine's own address: %s", got)
	}
	if got := run(t, "docker exec mate /self dial 127.0.0.1:8080 || true"); !strings.Contains(got,
		"refused") {
		t.Errorf("a container's own loopback address: %s", got)
	}
	// A redirected client would have to be bound to the dialled address. docs/fastpath.md explains
	// why it is not.
	run(t, "ip addr add 198.18.9.9/32 dev lo")
	if got := dial("198.18.9.9:8080"); got != "web for 198.18.9.9" {
		t.Errorf("another address of the machine's: %s", got)
	}
	run(t, "ip addr del 198.18.9.9/32 dev lo")
	if now := taken(t); now != n {
		t.Errorf("%d took a shortcut that may not", now-n)
	}
	s, err := Look(context.Background())
	if err != nil || s.State != On || len(s.Shortcuts) != 3 || s.Shortcuts[0].Container != "web" ||
		len(s.Left) == 0 || s.Left[0].Proto != "udp" {
		t.Errorf("%+v, %v", s, err)
	}
	open, err := net.Dial("tcp", dials[0])
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if err := errors.Join(f.Close(), turnOff()); err != nil {
		t.Fatal(err)
	}
	if got := greeting(open); got != before[dials[0]] {
		t.Errorf("a connection that stays: %s", got)
	}
	c, err := net.Dial("tcp", dials[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := greeting(c); got != before[dials[0]] || proxied(t) == 0 {
		t.Errorf("after it: %s, docker-proxies have %d connections", got, proxied(t))
	}
	if now := run(t, "find /run /sys/fs/bpf -path /run/s -prune -o -path /run/containerd -prune -o -print | sort"); now != pins {
		t.Errorf("files are left:\n%s\nbefore:\n%s", now, pins)
	}
	if now := run(t, "cat /proc/self/mounts"); now != mounts {
		t.Errorf("mounts are left:\n%s\nbefore:\n%s", now, mounts)
	}
	if s, err := Look(context.Background()); err != nil || s.State != Off {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestBesideLaterRules(t *testing.T) {
	withEngine(t)
	container(t, "web", "-p 8080:80")
	const at = "127.0.0.1:8080"
	f := turnOn(t)
	ctx, cancel := context.WithCancel(context.Background())
	watched := make(chan error, 1)
	w := Watcher{Lease: time.Hour}
	go func() { watched <- w.Run(ctx, f) }()
	took := func() bool {
		n := taken(t)
		return strings.HasPrefix(dial(at), "web") && taken(t) > n
	}
	for _, r := range []struct{ add, undo string }{
		{"iptables -I OUTPUT -m owner --uid-owner 12345 -j REJECT",
			"iptables -D OUTPUT -m owner --uid-owner 12345 -j REJECT"},
		{"ip rule add uidrange 12345-12345 lookup 99",
			"ip rule del uidrange 12345-12345 lookup 99"},
		{"tc qdisc add dev lo root tbf rate 1gbit burst 100k latency 10ms",
			"tc qdisc del dev lo root"},
	} {
		testwait.Until(t, patience, "the port has its shortcut", took)
		run(t, r.add)
		began := time.Now()
		testwait.Until(t, patience, "docker-proxy serves after "+r.add, func() bool {
			return !took()
		})
		t.Logf("%s: after %v", r.add, time.Since(began).Round(time.Millisecond))
		run(t, r.undo)
	}
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}
}

// Clients take docker-proxy before a full queue makes one wait to connect.
func TestBesideQueue(t *testing.T) {
	withEngine(t)
	const queue, clients = 3, 8
	container(t, "web", fmt.Sprintf("--sysctl net.core.somaxconn=%d -p 8080:80", queue))
	pid := run(t, "docker inspect -f '{{.State.Pid}}' web")
	turnOn(t)
	run(t, "kill -STOP "+pid)
	var all []net.Conn
	for range clients {
		c, err := net.DialTimeout("tcp", "127.0.0.1:8080", patience)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	s, err := Look(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var left uint64
	for _, n := range s.Why {
		left += n
	}
	if n := taken(t); n == 0 || n > queue+1 || n+left != clients {
		t.Errorf("of %d clients %d took the shortcut, left alone: %v", clients, n, s.Why)
	}
	run(t, "kill -CONT "+pid)
	for _, c := range all {
		if got := greeting(c); !strings.HasPrefix(got, "web for ") {
			t.Error(got)
		}
	}
}

func TestBesideTransfers(t *testing.T) {
	withEngine(t)
	container(t, "web", "-p 8080:80")
	f := turnOn(t)
	data := make([]byte, 4<<20)
	_, _ = rand.Read(data)
	want := sha256.Sum256(data)
	var done atomic.Int32
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, err := echoed("127.0.0.1:8080", data); err != nil || got != want {
					t.Errorf("after %d transfers: %v, intact: %t", done.Load(), err, got == want)
					return
				}
				done.Add(1)
			}
		})
	}
	// The shortcuts are switched by the table's state, lease and entries, and by loading it again.
	for round := range 4 {
		for _, change := range []func() error{
			f.table.Stop,
			func() error { return f.table.Renew(time.Hour) },
			func() error { return f.table.Renew(0) },
			func() error { return f.drop("") },
			func() error { _, err := f.Update(context.Background(), time.Hour); return err },
			func() (err error) {
				if err := errors.Join(f.Close(), turnOff()); err != nil {
					return err
				}
				if f, err = TurnOn(Choice{All: true}); err != nil {
					return err
				}
				_, err = f.Update(context.Background(), time.Hour)
				return err
			},
		} {
			if err := change(); err != nil {
				t.Error(err)
			}
			n := done.Load()
			testwait.Met(patience, func() bool { return done.Load() > n || t.Failed() })
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	close(stop)
	all.Wait()
	if n := taken(t); n == 0 {
		t.Error("none took a shortcut")
	}
	_ = f.Close()
}

func echoed(at string, data []byte) (sum [sha256.Size]byte, err error) {
	c, err := net.DialTimeout("tcp", at, patience)
	if err != nil {
		return sum, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	line := make([]byte, 1)
	for line[0] != '\n' {
		if _, err := io.ReadFull(c, line); err != nil {
			return sum, fmt.Errorf("greeting: %w", err)
		}
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(c, bytes.NewReader(data))
		sent <- errors.Join(err, c.(*net.TCPConn).CloseWrite())
	}()
	h := sha256.New()
	if _, err = io.Copy(h, c); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), <-sent
}

// Containers take each other's address while clients connect to both. No client may reach the wrong
// container.
func TestBesideChurn(t *testing.T) {
	e := withEngine(t)
	cycles := 6
	if n, err := strconv.Atoi(os.Getenv("BRIDGETOLL_TEST_CHURN")); err == nil {
		cycles = n
	}
	run(t, "docker network create --subnet 172.30.5.0/24 churn")
	f := turnOn(t)
	ctx, cancel := context.WithCancel(context.Background())
	watched := make(chan error, 1)
	w := Watcher{Lease: 20 * time.Second}
	go func() { watched <- w.Run(ctx, f) }()
	stop := make(chan struct{})
	var all sync.WaitGroup
	var right, wrong, refused atomic.Int64
	for i := range 4 {
		want, at := []string{"even", "odd"}[i%2], fmt.Sprintf("127.0.0.1:%d", 8080+i%2)
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch got := dial(at); {
				case strings.HasPrefix(got, want+" for "):
					right.Add(1)
				case strings.Contains(got, " for "):
					wrong.Add(1)
					t.Errorf("%s: %s answered", at, got)
				default:
					refused.Add(1)
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	shortcuts := 0
	for i := range cycles {
		name := []string{"even", "odd"}[i%2]
		launch(t, name, fmt.Sprintf("--network churn --ip 172.30.5.9 -p %d:80", 8080+i%2))
		n := right.Load()
		if testwait.Met(patience, func() bool {
			s, err := Look(ctx)
			return err == nil && len(s.Shortcuts) == 2 && s.Shortcuts[0].Taken > 0 &&
				right.Load() > n
		}) {
			shortcuts++
		}
		run(t, []string{"docker rm -f ", "docker stop "}[i/2%2]+name)
		run(t, "docker rm -f "+name+" 2>/dev/null || true")
		if t.Failed() {
			break
		}
	}
	if shortcuts != cycles {
		t.Errorf("in %d of %d cycles there were shortcuts, and they were taken", shortcuts, cycles)
	}
	launch(t, "even", "--network churn --ip 172.30.5.9 -p 8080:80 --restart always")
	e.Stop()
	e.Start(t)
	n := taken(t)
	testwait.Until(t, patience, "shortcuts come again with the engine", func() bool {
		return taken(t) > n
	})
	close(stop)
	all.Wait()
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}
	t.Logf("%d cycles: %d connections reached the right container, %d the other one, %d none",
		cycles, right.Load(), wrong.Load(), refused.Load())
}

// When the lease runs out, open connections stay and new ones take docker-proxy.
func TestBesideKilledWatcher(t *testing.T) {
	withEngine(t)
	container(t, "web", "-p 8080:80")
	f := turnOn(t)
	if err := f.table.Renew(0); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "watch")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	state := func(want string) func() bool {
		return func() bool {
			s, err := Look(context.Background())
			return err == nil && s.State == want
		}
	}
	testwait.Until(t, patience, "the watcher renews the lease", state(On))
	c, err := net.Dial("tcp", "127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	testwait.Until(t, patience, "the lease runs out", state(Expired))
	if got := greeting(c); !strings.HasPrefix(got, "web for ") {
		t.Errorf("a connection that was there: %s", got)
	}
	n := taken(t)
	if got := dial("127.0.0.1:8080"); !strings.HasPrefix(got, "web for ") || taken(t) != n {
		t.Errorf("a new one: %s", got)
	}
	if !Abandoned() {
		t.Error("toll clean would not find it")
	}
	if err := turnOff(); err != nil {
		t.Fatal(err)
	}
	if Abandoned() || IsOn() {
		t.Error("something is left")
	}
}
