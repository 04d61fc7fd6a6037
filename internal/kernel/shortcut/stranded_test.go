package shortcut

import (
	"errors"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

var families = []struct{ name, dial, target string }{
	{"v4", "127.0.0.1:7070", "172.31.9.2:82"},
	{"v6", "[::1]:7071", "[fd31:9::2]:83"},
	{"v6-to-v4", "[::1]:7072", "172.31.9.2:84"},
}

// Clients whose SYN found the old server's queue full never reach the new server at its address,
// even without a keeper.
func TestAnswerOfAnother(t *testing.T) {
	m := newMachine(t)
	clients := 500
	if n, err := strconv.Atoi(os.Getenv("BRIDGETOLL_TEST_STRANDED")); err == nil {
		clients = n
	}
	for _, c := range families {
		t.Run(c.name, func(t *testing.T) {
			dial, target := netip.MustParseAddrPort(c.dial), netip.MustParseAddrPort(c.target)
			before, err := m.table.Left()
			if err != nil {
				t.Fatal(err)
			}
			full := m.listenOnly(t, target, 0)
			p := m.proxy(t, c.dial)
			m.add(t, c.dial, target, p)
			fds := m.begin(t, dial, clients)
			testwait.Until(t, time.Minute, "the queue is full", func() bool {
				return len(connected(fds)) > 0
			})
			m.proxies[p.PID]()
			if err := unix.Close(full); err != nil {
				t.Fatal(err)
			}
			waiting := pending(fds)
			if len(waiting) < clients/2 {
				t.Fatalf("%d of %d wait", len(waiting), clients)
			}
			serve(t, m.box, c.target, "another container")
			gone := reasons[len(reasons)-1]
			testwait.Until(t, time.Minute, "the other one answers", func() bool {
				left, err := m.table.Left()
				return len(connected(waiting)) > 0 ||
					err == nil && left[gone] >= before[gone]+uint64(len(waiting))
			})
			if got := connected(waiting); len(got) > 0 {
				t.Errorf("%d of %d clients reached the other container", len(got), len(waiting))
			}
			var n int
			err = m.host.Do(func() (err error) {
				n, err = m.table.Abort(func(e Entry) bool {
					return e != Entry{Dial: dial, Target: target}
				})
				return err
			})
			if err != nil || n != len(waiting) {
				t.Errorf("aborted %d of %d: %v", n, len(waiting), err)
			}
			for _, fd := range waiting {
				if e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil ||
					unix.Errno(e) != unix.ECONNABORTED {
					t.Fatalf("after Abort: %v, %v", unix.Errno(e), err)
				}
			}
		})
	}
}

func TestResetByAnother(t *testing.T) {
	m := newMachine(t)
	target := netip.MustParseAddrPort("172.31.9.2:82")
	full := m.listenOnly(t, target, 0)
	p := m.proxy(t, lo4)
	m.add(t, lo4, target, p)
	fds := m.begin(t, netip.MustParseAddrPort(lo4), 20)
	testwait.Until(t, time.Minute, "the queue is full", func() bool {
		return len(connected(fds)) > 0
	})
	waiting := pending(fds)
	m.proxies[p.PID]()
	if err := unix.Close(full); err != nil {
		t.Fatal(err)
	}
	for _, fd := range waiting {
		testwait.Until(t, time.Minute, "the client is refused", func() bool {
			e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			return err == nil && unix.Errno(e) == unix.ECONNREFUSED
		})
	}
}

func TestCloseAborts(t *testing.T) {
	m := newMachine(t)
	target := netip.MustParseAddrPort("172.31.9.2:82")
	full := m.listenOnly(t, target, 0)
	defer unix.Close(full)
	m.add(t, lo4, target, m.proxy(t, lo4))
	own := m.begin(t, target, 20)
	testwait.Until(t, time.Minute, "the queue is full", func() bool {
		return len(connected(own)) > 0
	})
	own = pending(own)
	taken := m.begin(t, netip.MustParseAddrPort(lo4), 20)
	if got := pending(taken); len(got) != len(taken) {
		t.Fatalf("%d of %d wait", len(got), len(taken))
	}
	if err := m.host.Do(func() error { return m.table.Close() }); err != nil {
		t.Error(err)
	}
	if got := pending(own); len(got) != len(own) {
		t.Errorf("%d of %d connects without a shortcut were aborted", len(own)-len(got), len(own))
	}
	if got := pending(taken); len(got) != 0 {
		t.Errorf("%d of %d connects are left", len(got), len(taken))
	}
}

func (m *testMachine) listenOnly(t *testing.T, at netip.AddrPort, queue int) (fd int) {
	t.Helper()
	if err := m.box.Do(func() (err error) {
		if fd, err = unix.Socket(family(at), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
			unix.Bind(fd, sockaddr(at)), unix.Listen(fd, queue))
	}); err != nil {
		t.Fatal(err)
	}
	return fd
}

func (m *testMachine) begin(t *testing.T, at netip.AddrPort, n int) (fds []int) {
	t.Helper()
	t.Cleanup(func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	})
	if err := m.host.Do(func() error {
		for range n {
			fd, err := unix.Socket(
				family(at), unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return err
			}
			fds = append(fds, fd)
			if err := unix.Connect(fd, sockaddr(at)); err != nil &&
				!errors.Is(err, unix.EINPROGRESS) {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return fds
}

func family(at netip.AddrPort) int {
	if at.Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func sockaddr(at netip.AddrPort) unix.Sockaddr {
	if at.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
}

func connected(fds []int) (out []int) {
	for _, fd := range fds {
		if _, err := unix.Getpeername(fd); err == nil {
			out = append(out, fd)
		}
	}
	return out
}

func pending(fds []int) (out []int) {
	for _, fd := range fds {
		if i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil &&
			i.State == 2 {
			out = append(out, fd)
		}
	}
	return out
}
