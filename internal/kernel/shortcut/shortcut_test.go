package shortcut

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const (
	lo4 = "127.0.0.1:7070"
	lo6 = "[::1]:7070"
)

func TestClientsTakeShortcut(t *testing.T) {
	m := newMachine(t)
	m.add(t, lo4, boxAddr4, m.proxy(t, lo4))
	m.add(t, lo6, boxAddr6, m.proxy(t, lo6))
	mapped := "[::ffff:127.0.0.1]:7070"
	for _, c := range []struct {
		name   string
		family int
		dial   string
		answer string
		own    string
	}{
		{"v4", unix.AF_INET, lo4, "server for 172.31.9.1", "127.0.0.1"},
		{"v6", unix.AF_INET6, lo6, "server for fd31:9::1", "::1"},
		{"mapped", unix.AF_INET6, mapped, "server for 172.31.9.1", "::ffff:127.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, local, peer := m.socket(t, c.family, 0, c.dial, nil)
			if got != c.answer {
				t.Errorf("answered: %q, want %q", got, c.answer)
			}
			if local.Addr() != netip.MustParseAddr(c.own) || local.Port() == 0 {
				t.Errorf("own address: %s, want %s", local, c.own)
			}
			if peer != netip.MustParseAddrPort(c.dial) {
				t.Errorf("peer: %s, want %s", peer, c.dial)
			}
		})
	}
	all, err := m.table.Entries()
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	for _, e := range all {
		if want := map[string]uint64{lo4: 2, lo6: 1}[e.Dial.String()]; e.Taken != want {
			t.Errorf("%s: taken %d times, want %d", e.Dial, e.Taken, want)
		}
	}
}

// Docker gives ::1 a proxy even if the container has IPv4 only.
func TestClientsTakeShortcutFromV6ToV4(t *testing.T) {
	m := newMachine(t)
	m.add(t, lo6, boxAddr4, m.proxy(t, lo6))
	got, local, peer := m.socket(t, unix.AF_INET6, 0, lo6, nil)
	if got != "server for 172.31.9.1" || local.Addr() != netip.IPv6Loopback() ||
		peer.String() != lo6 {
		t.Error(got, local, peer)
	}
	only := func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 1) }
	if got, _, _ := m.socket(t, unix.AF_INET6, 0, lo6, only); got != "proxy" {
		t.Errorf("a socket of IPv6 only: %s", got)
	}
	m.wantLeft(t, "the client's socket takes IPv6 only", 1)
}

func TestOtherClientsUseProxy(t *testing.T) {
	m := newMachine(t)
	m.add(t, lo4, boxAddr4, m.proxy(t, "0.0.0.0:7070"))
	bound := "the client's socket is bound to an address"
	device := "the client's socket is bound to a device or marked"
	const mptcp = 262
	for _, c := range []struct {
		name     string
		protocol int
		dial     string
		why      Reason
		prepare  func(fd int) error
	}{
		{"bound-address", 0, lo4, Reason(bound), func(fd int) error {
			return unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
		}},
		{"bound-port", 0, lo4, Reason(bound), func(fd int) error {
			return unix.Bind(fd, &unix.SockaddrInet4{Port: 7071})
		}},
		{"device", 0, lo4, Reason(device), func(fd int) error {
			return unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "lo")
		}},
		{"mark", 0, lo4, Reason(device), func(fd int) error {
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 7)
		}},
		{"other-loopback", 0, "127.0.0.2:7070", "", nil},
		{"own-address", 0, "172.31.9.1:7070", "", nil},
		{"any", 0, "0.0.0.0:7070", "", nil},
		{"mptcp", mptcp, lo4, "the client is the kernel", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, err := m.table.Left()
			if err != nil {
				t.Fatal(err)
			}
			got, _, peer := m.socket(t, unix.AF_INET, c.protocol, c.dial, c.prepare)
			if got != "proxy" {
				t.Fatalf("answered: %s; peer: %s", got, peer)
			}
			if after, err := m.table.Left(); err != nil ||
				c.why != "" && c.name != "mptcp" && after[c.why] != before[c.why]+1 {
				t.Error(after, err)
			}
		})
	}
}

func TestConnectsAgain(t *testing.T) {
	m := newMachine(t)
	m.add(t, lo4, boxAddr4, m.proxy(t, lo4))
	serve(t, m.host, "127.0.0.1:7072", "other")
	got, local, peer := m.socket(t, unix.AF_INET, 0, "127.0.0.1:7072", func(fd int) error {
		err := unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port})
		if err != nil {
			return err
		}
		none := make([]byte, unix.SizeofSockaddrInet4) // AF_UNSPEC disconnects
		_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none[0])),
			uintptr(len(none)))
		if e != 0 {
			return e
		}
		return nil
	})
	if got != "other for 127.0.0.1" || local.Addr().String() != "127.0.0.1" ||
		peer.String() != "127.0.0.1:7072" {
		t.Errorf("%s, %s, peer %s", got, local, peer)
	}
}

func TestOtherNamespace(t *testing.T) {
	m := newMachine(t)
	m.add(t, lo4, boxAddr4, m.proxy(t, lo4))
	serve(t, m.box, lo4, "its own")
	var got string
	_ = m.box.Do(func() error { got = ask(lo4); return nil })
	if got != "its own for 127.0.0.1" {
		t.Error(got)
	}
}

func TestOffRemovedOrExpired(t *testing.T) {
	m := newMachine(t)
	m.add(t, lo4, boxAddr4, m.proxy(t, lo4))
	want := func(what, answer string) {
		t.Helper()
		if got := m.ask(lo4); !strings.HasPrefix(got, answer) {
			t.Errorf("%s: %s answered", what, got)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want("on", "server")
	must(m.table.Stop())
	want("stopped", "proxy")
	must(m.table.Renew(time.Hour))
	want("renewed", "server")
	must(m.table.Renew(0))
	want("not renewed", "proxy")
	must(m.table.Renew(20 * time.Millisecond))
	testwait.Until(t, time.Minute, "the lease runs out", func() bool {
		s, err := m.table.State()
		return err == nil && s.Lease == 0
	})
	want("not renewed in time", "proxy")
	m.wantLeft(t, "switched off, or the lease ran out", 3)
	must(m.table.Renew(time.Hour))
	must(m.table.Remove(netip.MustParseAddrPort(lo4)))
	must(m.table.Remove(netip.MustParseAddrPort(lo4)))
	want("removed", "proxy")
}

// Stale maps must not matter.
func TestListenerDecides(t *testing.T) {
	m := newMachine(t)
	first := m.proxy(t, sharing+"0.0.0.0:7070")
	shortcut := Entry{Dial: netip.MustParseAddrPort(lo4), Target: boxAddr4}
	if err := m.host.Do(func() error {
		return m.table.Add(shortcut, first)
	}); !errors.Is(err, ErrChanged) {
		t.Errorf("beside others: %v", err)
	}
	m.markAnyway(t, shortcut, first)
	beside := serve(t, m.host, sharing+lo4, "beside")
	if got := m.ask(lo4); got != "beside for 127.0.0.1" {
		t.Errorf("beside it: %s", got)
	}
	beside.Close()
	if got := m.ask(lo4); !strings.HasPrefix(got, "server") {
		t.Errorf("alone again: %s", got)
	}
	m.proxies[first.PID]()
	testwait.Until(t, time.Minute, "the proxy is gone", func() bool {
		return strings.HasSuffix(m.ask(lo4), "connection refused")
	})
	m.proxy(t, "0.0.0.0:7070")
	if got := m.ask(lo4); got != "proxy" {
		t.Errorf("after it: %s", got)
	}
	m.wantLeft(t, "another program than docker-proxy listens", 2)
}

func TestTargetsAgree(t *testing.T) {
	m := newMachine(t)
	l := m.proxy(t, lo4)
	m.add(t, lo4, boxAddr4, l)
	err := m.table.maps.Shortcuts.Put(toEndpoint(netip.MustParseAddrPort(lo4)),
		objectShortcut{Target: toEndpoint(boxAddr6)})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.ask(lo4); got != "proxy" {
		t.Error(got)
	}
}

func TestFilteredClient(t *testing.T) {
	m := newMachine(t)
	m.add(t, lo4, boxAddr4, m.proxy(t, lo4))
	root, err := cgroupRoot()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	parent := filepath.Join(root.Name(), fmt.Sprintf("toll-test-%d", os.Getpid()))
	dir := filepath.Join(parent, "child")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(dir); _ = os.Remove(parent) }()
	from := func() string {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), dialEnv+"="+dir+"="+lo4)
		var out []byte
		if err := m.host.Do(func() (err error) {
			out, err = cmd.CombinedOutput()
			return err
		}); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if got := from(); !strings.HasPrefix(got, "server") {
		t.Fatalf("without filters: %s", got)
	}
	for _, a := range []struct {
		kind ebpf.ProgramType
		at   ebpf.AttachType
	}{{ebpf.CGroupSKB, ebpf.AttachCGroupInetEgress}, {ebpf.CGroupSKB, ebpf.AttachCGroupInetIngress},
		{ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect}} {
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: "other", Type: a.kind, AttachType: a.at, License: "MIT",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := link.AttachCgroup(link.CgroupOptions{Path: parent, Attach: a.at, Program: p})
		if err != nil {
			t.Fatal(err)
		}
		if got := from(); got != "proxy" {
			t.Errorf("%s: %s", a.at, got)
		}
		_ = l.Close()
		_ = p.Close()
		testwait.Until(t, time.Minute, "the filter is gone", func() bool {
			return strings.HasPrefix(from(), "server")
		})
	}
}

func TestAddRefuses(t *testing.T) {
	m := newMachine(t)
	l := m.proxy(t, lo4)
	ok := Entry{Dial: netip.MustParseAddrPort(lo4), Target: boxAddr4}
	other := func(change func(*Listener)) Listener { x := l; change(&x); return x }
	for name, c := range map[string]struct {
		e Entry
		l Listener
	}{
		"command": {ok, other(func(l *Listener) { l.Command = []string{"docker-proxy"} })},
		"inode":   {ok, other(func(l *Listener) { l.Inode++ })},
		"process": {ok, other(func(l *Listener) { l.PID = 1 << 30 })},
		"self":    {ok, other(func(l *Listener) { l.PID = os.Getpid() })},
	} {
		if err := m.host.Do(func() error {
			return m.table.Add(c.e, c.l)
		}); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := m.box.Do(func() error { return m.table.Add(ok, l) }); !errors.Is(err, ErrChanged) {
		t.Errorf("namespace: %v", err)
	}
	wide := Entry{Dial: netip.MustParseAddrPort("172.31.9.1:7070"), Target: boxAddr4}
	if err := m.host.Do(func() error { return m.table.Add(wide, l) }); err == nil {
		t.Error("an address that is not a loopback address")
	}
	if all, err := m.table.Entries(); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
	if got := m.ask(lo4); got != "proxy" {
		t.Error(got)
	}
}

func (m *testMachine) wantLeft(t *testing.T, why Reason, want uint64) {
	t.Helper()
	left, err := m.table.Left()
	if err != nil || left[why] != want {
		t.Errorf("%q: %d, want %d; %v", why, left[why], want, err)
	}
}

func (m *testMachine) markAnyway(t *testing.T, e Entry, l Listener) {
	t.Helper()
	pidfd, err := unix.PidfdOpen(l.PID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	theirs, err := l.descriptor()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdGetfd(pidfd, theirs, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(m.table.maps.Listeners.Put(int32(fd), toEndpoint(e.Target)),
		m.table.maps.Shortcuts.Put(toEndpoint(e.Dial),
			objectShortcut{Target: toEndpoint(e.Target)})); err != nil {
		t.Fatal(err)
	}
}
