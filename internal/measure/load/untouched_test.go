package load

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestTouchedSocketsAreNoticed(t *testing.T) {
	set := func(level, option, value int) func(fd int) error {
		return func(fd int) error { return unix.SetsockoptInt(fd, level, option, value) }
	}
	ret := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 20}}
	for _, c := range []struct {
		name, load, says string
		touch            func(fd int) error
	}{
		{"nothing", "bulk", "", func(int) error { return nil }},
		{"pacing", "bulk", "SO_MAX_PACING_RATE was unlimited and is 4000000",
			set(unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 4000000)},
		{"pacing-udp", "udp-rr", "SO_MAX_PACING_RATE was unlimited and is 4000000",
			set(unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 4000000)},
		{"send-buffer", "bulk", "SO_BUF_LOCK was 0 and is 1",
			set(unix.SOL_SOCKET, unix.SO_SNDBUF, 65536)},
		{"low-water", "bulk", "SO_RCVLOWAT was 1 and is 4096",
			set(unix.SOL_SOCKET, unix.SO_RCVLOWAT, 4096)},
		{"nagle", "rr", "TCP_NODELAY was 1 and is 0", set(unix.IPPROTO_TCP, unix.TCP_NODELAY, 0)},
		{"congestion", "bulk", `and is "reno"`, func(fd int) error {
			now, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
			if err != nil || strings.HasPrefix(now, "reno") {
				t.Skip("it is reno already")
			}
			return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
		}},
		{"filter", "bulk", "SO_GET_FILTER was 0 instructions and is 1 instructions",
			func(fd int) error {
				return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
					&unix.SockFprog{Len: 1, Filter: &ret[0]})
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv, cli := opened(t, testnet.TCP(t), options(sample.Load{Kind: c.load}), direct)
			if err := c.touch(cli.threads[0].fd); err != nil {
				t.Fatal(err)
			}
			_, _, err := run(srv, cli, soon(warmup, window))
			said := err != nil &&
				strings.Contains(err.Error(), "another program changed a socket of the load")
			if said != (c.says != "") {
				t.Fatalf("%v", err)
			}
			if c.says != "" && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// If a receiver takes 16 kB at a time, the load does not wait until the sender's buffer is empty.
func TestOverdueLoadsOfTouchedSockets(t *testing.T) {
	defer func(d time.Duration) { overdue = d }(overdue)
	overdue = 20 * time.Millisecond
	srv, cli := opened(t, testnet.TCP(t), options(sample.Load{Kind: "bulk"}), direct)
	when := soon(warmup, window)
	fails := make(chan error, 1)
	// Nobody sends, as if the sender was blocked.
	go func() { _, err := srv.Run(when); fails <- err }()
	testwait.Until(t, time.Minute, "the server has its connection", func() bool {
		return srv.threads[0].tid.Load() != 0
	})
	if err := unix.SetsockoptInt(srv.threads[0].fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP,
		1500); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-fails:
		if err == nil || !strings.Contains(err.Error(), "TCP_WINDOW_CLAMP was 65536 and is 1500") {
			t.Errorf("%v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the load is still waited for")
	}
	err := unix.Shutdown(cli.threads[0].fd, unix.SHUT_RDWR)
	<-srv.done // a thread in a raw system call would stop the others of this process
	if err := errors.Join(err, cli.Close(), srv.Close()); err != nil {
		t.Error(err)
	}
}

// The kernel moves the clamp of a receive window up as the buffer grows, and down as packets take
// more memory for their bytes.
func TestClampedWindowsAreNoticed(t *testing.T) {
	atOpen := receiving{clamp: 65536, buffer: 131072, segment: 536}
	for _, c := range []struct {
		name string
		now  receiving
		want bool
	}{
		{"as it was", atOpen, false},
		{"grown", receiving{2304905, 2341491, 65483}, false},
		{"small packets in pages of their own", receiving{131072 * 1448 / 4608, 131072, 1448}, false},
		{"small packets in four pages each", receiving{131072 * 1448 / 16896, 131072, 1448}, false},
		{"clamped", receiving{4096, 2836914, 4096}, true},
		{"clamped to a quarter", receiving{16384, 131072, 16384}, true},
		{"small packets, clamped", receiving{4096, 131072, 1448}, true},
	} {
		if got := c.now.clamp < atOpen.least(c.now.segment); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if udp := (receiving{}); udp.clamp < udp.least(0) {
		t.Error("a socket of UDP has no clamp")
	}

	listener, err := listen(testnet.TCP(t))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(listener)
	sa, err := unix.Getsockname(listener)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(sender)
	if err := unix.Connect(sender, sa); err != nil {
		t.Fatal(err)
	}
	receiver, err := accept(listener, false)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(receiver)
	th := &thread{fd: receiver}
	th.noteOptions()
	b := make([]byte, 1<<16)
	for range 64 {
		if _, e := send(sender, b); e != 0 {
			t.Fatal(e)
		}
		for got := 0; got < len(b); {
			n, e := recv(receiver, b[got:])
			if e != 0 || n == 0 {
				t.Fatal(n, e)
			}
			got += n
		}
	}
	if err := th.untouched(); err != nil {
		t.Errorf("after 4 MiB: %v; it has %+v", err, windowOf(receiver))
	}
	if err := unix.SetsockoptInt(receiver, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, 8192); err != nil {
		t.Fatal(err)
	}
	if err := th.untouched(); err == nil ||
		!strings.Contains(err.Error(), "TCP_WINDOW_CLAMP was 65536 and is 8192") {
		t.Errorf("%v", err)
	}
}
