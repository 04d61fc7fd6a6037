package shortcut

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

// A process represents docker-proxy.
type testMachine struct {
	host, box *netns.NS
	table     *Table
	proxies   map[int]func()
}

const (
	proxyEnv = "BRIDGETOLL_TEST_LISTEN"
	dialEnv  = "BRIDGETOLL_TEST_DIAL"
	sharing  = "sharing "
	port     = 7070
)

var (
	boxAddr4 = netip.MustParseAddrPort("172.31.9.2:80")
	boxAddr6 = netip.MustParseAddrPort("[fd31:9::2]:80")
)

func TestMain(m *testing.M) {
	if at := os.Getenv(proxyEnv); at != "" {
		relay(at)
	}
	if at := os.Getenv(dialEnv); at != "" {
		dialFrom(at)
	}
	os.Exit(m.Run())
}

func relay(at string) {
	at, shares := strings.CutPrefix(at, sharing)
	network := "tcp4"
	if strings.HasPrefix(at, "[") {
		network = "tcp6"
	}
	l, err := plain(network, at, shares)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	testnet.Accept(l, func(c net.Conn) { fmt.Fprint(c, "proxy") })
	os.Exit(1)
}

// plain listens without Multipath TCP, Go's default, like docker-proxy.
func plain(network, at string, shares bool) (net.Listener, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		return errors.Join(raw.Control(func(fd uintptr) {
			if shares {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			}
		}), err)
	}}
	c.SetMultipathTCP(false)
	return c.Listen(context.Background(), network, at)
}

func dialFrom(at string) {
	dir, at, _ := strings.Cut(at, "=")
	if err := os.WriteFile(dir+"/cgroup.procs", []byte("0"), 0); err != nil {
		fmt.Print(err)
		os.Exit(1)
	}
	fmt.Print(ask(at))
	os.Exit(0)
}

func ask(at string) string {
	c, err := net.Dial("tcp", at)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	return answer(c)
}

func answer(c net.Conn) string {
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	b, err := io.ReadAll(c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func newMachine(t *testing.T) *testMachine {
	t.Helper()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "BPF needs root")
	}
	m := &testMachine{}
	for _, n := range []**netns.NS{&m.host, &m.box} {
		ns := netnstest.New(t)
		*n = ns
	}
	tid, err := m.box.TID()
	if err != nil {
		t.Fatal(err)
	}
	ip(t, m.host, fmt.Sprintf(`link set lo up
link add br0 type bridge
addr add 172.31.9.1/24 dev br0
addr add fd31:9::1/64 dev br0 nodad
link set br0 up
link add p0 type veth peer name eth0 netns %d
link set p0 master br0 up`, tid))
	ip(t, m.box, `link set lo up
link set eth0 up
addr add 172.31.9.2/24 dev eth0
addr add fd31:9::2/64 dev eth0 nodad`)
	serve(t, m.box, ":80", "server")
	if err := m.host.Do(func() (err error) { m.table, err = Load(); return err }); err != nil {
		pathtest.SkipOrFail(t, "%v", err)
	}
	t.Cleanup(func() { _ = m.table.Close() })
	if err := m.table.Renew(time.Hour); err != nil {
		t.Fatal(err)
	}
	return m
}

func ip(t *testing.T, n *netns.NS, commands string) {
	t.Helper()
	var out []byte
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(commands + "\n")
	if err := n.Do(func() (err error) { out, err = cmd.CombinedOutput(); return err }); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func serve(t *testing.T, n *netns.NS, at, name string) net.Listener {
	t.Helper()
	at, shares := strings.CutPrefix(at, sharing)
	var l net.Listener
	if err := n.Do(func() (err error) {
		l, err = plain("tcp", at, shares)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go testnet.Accept(l, func(c net.Conn) {
		from, _ := netip.ParseAddrPort(c.RemoteAddr().String())
		fmt.Fprintf(c, "%s for %s", name, from.Addr().Unmap())
	})
	return l
}

func (m *testMachine) proxy(t *testing.T, at string) Listener {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"docker-proxy", "-test"}
	cmd.Env = append(os.Environ(), proxyEnv+"="+at)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.host.Start(cmd); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	t.Cleanup(end)
	if m.proxies == nil {
		m.proxies = map[int]func(){}
	}
	m.proxies[cmd.Process.Pid] = end
	b := make([]byte, 100)
	if n, err := out.Read(b); err != nil || string(b[:n]) != "ready\n" {
		t.Fatalf("%s, %v", b[:n], err)
	}
	return Listener{PID: cmd.Process.Pid, Inode: listening(t, cmd.Process.Pid), Command: cmd.Args}
}

func listening(t *testing.T, pid int) uint32 {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		var inode uint32
		if to, _ := os.Readlink(dir + "/" + e.Name()); to != "" {
			if n, _ := fmt.Sscanf(to, "socket:[%d]", &inode); n == 1 {
				return inode
			}
		}
	}
	t.Fatal("the process has no socket")
	return 0
}

func (m *testMachine) add(t *testing.T, dial string, target netip.AddrPort, l Listener) {
	t.Helper()
	if err := m.host.Do(func() error {
		return m.table.Add(Entry{Dial: netip.MustParseAddrPort(dial), Target: target}, l)
	}); err != nil {
		t.Fatal(err)
	}
}

func (m *testMachine) ask(at string) (got string) {
	_ = m.host.Do(func() error { got = ask(at); return nil })
	return got
}

func (m *testMachine) socket(t *testing.T, family, protocol int, at string,
	prepare func(fd int) error) (got string, local, peer netip.AddrPort) {
	t.Helper()
	if err := m.host.Do(func() error {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), "socket")
		defer f.Close()
		if prepare != nil {
			if err := prepare(fd); err != nil {
				return err
			}
		}
		to := netip.MustParseAddrPort(at)
		var sa unix.Sockaddr
		if family == unix.AF_INET {
			sa = &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
		}
		if family == unix.AF_INET6 {
			sa = &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
		}
		if err := unix.Connect(fd, sa); err != nil {
			got = err.Error()
			return nil
		}
		if local, err = name(unix.Getsockname(fd)); err != nil {
			return err
		}
		if peer, err = name(unix.Getpeername(fd)); err != nil {
			return err
		}
		b, err := io.ReadAll(f)
		got = string(b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return got, local, peer
}

func name(sa unix.Sockaddr, err error) (netip.AddrPort, error) {
	switch x := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(x.Addr), uint16(x.Port)), err
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(x.Addr), uint16(x.Port)), err
	}
	return netip.AddrPort{}, err
}
