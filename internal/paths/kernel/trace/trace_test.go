package trace

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/pathtest"
)

const port = 7000

func TestLayout(t *testing.T) {
	mine, its := reflect.TypeFor[Event](), reflect.TypeFor[objectEvent]()
	if mine.Size() != its.Size() {
		t.Errorf("%d bytes, the programs' have %d", mine.Size(), its.Size())
	}
	for i := range mine.NumField() {
		f := mine.Field(i)
		g, ok := its.FieldByNameFunc(func(n string) bool { return strings.EqualFold(n, f.Name) })
		if f.Name != "_" && (!ok || f.Offset != g.Offset || f.Type.Size() != g.Type.Size()) {
			t.Errorf("%s is at %d, in the programs %+v", f.Name, f.Offset, g)
		}
	}
}

// The order of steps from the client's call until the server's socket has the data.
var (
	local = []Kind{Queue, Xmit, Rx, Receive}
	tcp   = []Kind{TCP, Ready}
)

func TestOrder(t *testing.T) {
	veth := slices.Concat(local, local)
	for _, tc := range []struct {
		name  string
		lay   func(t testing.TB) network
		kind  int
		steps []Kind
	}{
		{"lo", loopback, unix.SOCK_STREAM, slices.Concat([]Kind{Send}, local, tcp)},
		{"lo6", loopback6, unix.SOCK_STREAM, slices.Concat([]Kind{Send}, local, tcp)},
		{"lo udp", loopback, unix.SOCK_DGRAM, slices.Concat(local, []Kind{Ready})},
		{"lo6 udp", loopback6, unix.SOCK_DGRAM, slices.Concat(local, []Kind{Ready})},
		{"bridge", bridged, unix.SOCK_STREAM, slices.Concat([]Kind{Send}, veth, tcp)},
		{"bridge udp", bridged, unix.SOCK_DGRAM, slices.Concat(veth, []Kind{Ready})},
		{"nat", translated, unix.SOCK_STREAM, slices.Concat([]Kind{Send}, veth, tcp)},
		{"nat udp", translated, unix.SOCK_DGRAM, slices.Concat(veth, []Kind{Ready})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := tc.lay(t)
			e := n.connect(t, tc.kind)
			const trips = 200
			log, lost := record(t, open1(t), Config{}, func(r *Recording) {
				r.Between(now(), now()+int64(time.Minute))
				e.talk(t, trips)
			})
			if lost != 0 {
				t.Errorf("%d events lost", lost)
			}
			right := 0
			var wrong []Kind
			for _, request := range requests(log) {
				if slices.Equal(request, tc.steps) {
					right++
				} else {
					wrong = request
				}
			}
			if right < trips*9/10 || right > trips {
				t.Errorf("%d of %d requests took the steps %v; another one %v", right, trips,
					tc.steps, wrong)
			}
		})
	}
}

// requests splits a log into the steps of packets and sockets to the server.
func requests(log []Event) (out [][]Kind) {
	var one []Kind
	for _, e := range log {
		switch e.Kind {
		case Send, Queue, Xmit, Rx, Receive, TCP:
			if e.Dest == port {
				one = append(one, e.Kind)
			}
		case Ready:
			if e.Source == port {
				out = append(out, append(one, e.Kind))
				one = nil
			}
		}
	}
	return out
}

func open1(t testing.TB) *Tracer {
	t.Helper()
	tracer, err := Open()
	if err != nil {
		pathtest.SkipOrFail(t, "%v", err)
	}
	t.Cleanup(func() {
		if err := tracer.Close(); err != nil {
			t.Error(err)
		}
	})
	return tracer
}

// record returns the events of all CPUs in the order of time. Ports and processes are the test's.
func record(t testing.TB, tracer *Tracer, c Config, f func(r *Recording)) (log []Event, lost int) {
	t.Helper()
	if c.CPUs == nil {
		for cpu := range runtime.NumCPU() {
			c.CPUs = append(c.CPUs, cpu)
		}
	}
	if c.Events == 0 {
		c.Events = 1 << 16
	}
	c.Ports, c.PIDs = []uint16{port}, []int{os.Getpid()}
	r, err := tracer.Attach(c)
	if err != nil {
		t.Fatal(err)
	}
	f(r)
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	byCPU, lost := r.Log()
	log = slices.Concat(byCPU...)
	slices.SortStableFunc(log, func(a, b Event) int { return int(a.TS - b.TS) })
	return log, lost
}

func now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

type network struct {
	client, server *netns.NS
	dial           string
}

func loopback(t testing.TB) network {
	ns := namespace(t)
	return network{ns, ns, "127.0.0.1:7000"}
}

func loopback6(t testing.TB) network {
	ns := namespace(t)
	return network{ns, ns, "[::1]:7000"}
}

func bridged(t testing.TB) network {
	client, host, server := namespace(t), namespace(t), namespace(t)
	ip(t, host, "link add br0 type bridge\nlink set br0 up")
	for i, end := range []*netns.NS{client, server} {
		join(t, host, end, fmt.Sprintf("p%d", i), fmt.Sprintf("172.31.8.%d/24", i+1))
		ip(t, host, fmt.Sprintf("link set p%d master br0", i))
	}
	return network{client, server, "172.31.8.2:7000"}
}

// translated publishes port 7000 on a router. The server knows no other machine.
func translated(t testing.TB) network {
	client, router, server := namespace(t), namespace(t), namespace(t)
	join(t, router, client, "outside", "172.31.8.2/24")
	join(t, router, server, "inside", "172.31.9.2/24")
	ip(t, router, "addr add 172.31.8.1/24 dev outside\naddr add 172.31.9.1/24 dev inside")
	run(t, router, "", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
	run(t, router, `table ip t {
chain in { type nat hook prerouting priority -100; ip daddr 172.31.8.1 dnat to 172.31.9.2; }
chain out { type nat hook postrouting priority 100; oifname inside masquerade; }
}`, "nft", "-f", "-")
	return network{client, server, "172.31.8.1:7000"}
}

func join(t testing.TB, host, end *netns.NS, device, address string) {
	t.Helper()
	tid, err := end.TID()
	if err != nil {
		t.Fatal(err)
	}
	ip(t, host, fmt.Sprintf("link add %s type veth peer name eth0 netns %d\nlink set %s up",
		device, tid, device))
	ip(t, end, "addr add "+address+" dev eth0\nlink set eth0 up")
}

func namespace(t testing.TB) *netns.NS {
	t.Helper()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "BPF needs root")
	}
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	ip(t, ns, "link set lo up")
	return ns
}

func ip(t testing.TB, n *netns.NS, commands string) {
	t.Helper()
	run(t, n, commands, "ip", "-batch", "-")
}

func run(t testing.TB, n *netns.NS, in, name string, args ...string) {
	t.Helper()
	var out []byte
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(in + "\n")
	if err := n.Do(func() (err error) { out, err = cmd.CombinedOutput(); return err }); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// ends are sockets that block, connected with each other.
type ends struct{ client, server int }

func (n network) connect(t testing.TB, kind int) (e ends) {
	t.Helper()
	at := netip.MustParseAddrPort(n.dial)
	any := netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())
	family := unix.AF_INET
	if at.Addr().Is6() {
		any, family = netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port()), unix.AF_INET6
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	socket := func(ns *netns.NS) (fd int) {
		check(ns.Do(func() (err error) {
			fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
			return err
		}))
		t.Cleanup(func() { _ = unix.Close(fd) })
		minute := unix.Timeval{Sec: 60}
		check(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &minute))
		return fd
	}
	server := socket(n.server)
	check(unix.Bind(server, sockaddr(any)))
	e = ends{socket(n.client), server}
	if kind == unix.SOCK_STREAM {
		check(unix.Listen(server, 1))
	}
	check(unix.Connect(e.client, sockaddr(at)))
	if kind == unix.SOCK_STREAM {
		fd, _, err := unix.Accept(server)
		check(err)
		t.Cleanup(func() { _ = unix.Close(fd) })
		e.server = fd
		return e
	}
	_, err := unix.Write(e.client, []byte{1})
	check(err)
	_, from, err := unix.Recvfrom(server, make([]byte, 1), 0)
	check(err)
	check(unix.Connect(server, from))
	return e
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}

// talk sends a byte there and back.
func (e ends) talk(t testing.TB, trips int) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- e.serve(trips) }()
	b := []byte{1}
	for range trips {
		if _, err := unix.Write(e.client, b); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Read(e.client, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

func (e ends) serve(trips int) error {
	b := []byte{1}
	for range trips {
		if _, err := unix.Read(e.server, b); err != nil {
			return err
		}
		if _, err := unix.Write(e.server, b); err != nil {
			return err
		}
	}
	return nil
}
