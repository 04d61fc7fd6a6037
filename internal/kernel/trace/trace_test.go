package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	devices "github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
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

// The steps from the client's call until the server's socket has the data.
var (
	local = []Kind{Queue, Xmit, Rx, Receive}
	tcp   = []Kind{TCP, Ready}
	veth  = slices.Concat(local, local)
)

func TestOrder(t *testing.T) {
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
		{"vxlan", tunnelled, unix.SOCK_STREAM, slices.Concat([]Kind{Send, Queue, Xmit}, local,
			[]Kind{Rx, Receive}, tcp)},
		{"lo rps", steered(loopback, "lo"), unix.SOCK_STREAM,
			slices.Concat([]Kind{Send}, local, tcp)},
		{"vxlan rps", steered(tunnelled, "eth0"), unix.SOCK_STREAM,
			slices.Concat([]Kind{Send, Queue, Xmit}, local, []Kind{Rx, Receive}, tcp)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := tc.lay(t).connect(t, tc.kind)
			tracer := tracer(t)
			want := slices.DeleteFunc(slices.Clone(tc.steps), func(k Kind) bool {
				return k == Send && slices.Contains(tracer.missing, "tcp_sendmsg_locked") ||
					k == Ready && slices.Contains(tracer.missing, "sk_data_ready")
			})
			// A busy machine sends a packet again that waits for another CPU.
			testwait.Unhindered(t, time.Minute, func(u testing.TB) {
				log, lost := record(t, tracer, Config{}, func(r *Recording) { talk(t, r, e) })
				if lost != 0 {
					u.Errorf("%d events lost", lost)
				}
				compare(u, requests(log), want)
				if tc.kind == unix.SOCK_STREAM {
					numbers(u, log)
				}
			})
		})
	}
}

func compare(t testing.TB, requests [][]Event, want []Kind) {
	t.Helper()
	right := 0
	var wrong []Kind
	for _, r := range requests {
		var kinds []Kind
		for _, e := range r {
			kinds = append(kinds, e.Kind)
		}
		if slices.Equal(kinds, want) {
			right++
		} else {
			wrong = kinds
		}
	}
	if right < trips*9/10 || right > trips {
		t.Errorf("%d of %d requests took the steps %v; another one %v", right, trips, want, wrong)
	}
}

// numbers compares the numbers of bytes at all steps.
func numbers(t testing.TB, log []Event) {
	t.Helper()
	for _, r := range requests(log) {
		for _, e := range r {
			want := r[0].Seq
			if e.Kind == Ready {
				want++
			}
			if e.Seq != want {
				t.Errorf("byte %d is %d in %+v", r[0].Seq, e.Seq, e)
				return
			}
		}
	}
	var written, read, copied []uint32
	for _, e := range log {
		switch {
		case e.Kind == Sent && e.Dest == port && e.Len == 1:
			written = append(written, e.Seq)
		case e.Kind == Read && e.Source == port && e.Len == 1:
			read = append(read, e.Seq)
		case e.Kind == Copy && e.Source == port:
			copied = append(copied, e.Seq+1)
		}
	}
	if len(copied) != trips {
		t.Errorf("%d bytes copied, want %d", len(copied), trips)
	}
	for _, other := range [][]uint32{written, read} { // old kernels lack both
		if len(other) > 0 && !slices.Equal(other, copied) {
			t.Errorf("bytes %d copied, others %d", copied, other)
		}
	}
}

// requests splits a log into the steps of packets and sockets to the server.
func requests(log []Event) (out [][]Event) {
	var one []Event
	for _, e := range log {
		switch e.Kind {
		case Send, Queue, Xmit, Rx, Receive, TCP, HookIn, HookOut, NATIn, NATOut:
			if e.Dest == port {
				one = append(one, e)
				continue
			}
			if one != nil {
				out = append(out, one)
			}
			one = nil
		case Ready:
			if e.Source == port {
				one = append(one, e)
			}
		}
	}
	return out
}

func TestThreads(t *testing.T) {
	e := loopback(t).connect(t, unix.SOCK_STREAM)
	log, _ := record(t, tracer(t), Config{}, func(r *Recording) { talk(t, r, e) })
	pid := os.Getpid()
	woken := map[uint32]bool{}
	ran := 0
	for _, e := range log {
		switch e.Kind {
		case Waking:
			woken[e.Dev] = true
			if !isThread(pid, e.Dev) {
				t.Errorf("thread %d of another process woke up", e.Dev)
			}
		case Switch:
			if woken[e.Dev] {
				ran++
			}
			delete(woken, e.Dev)
			if !isThread(pid, e.Dev) && !isThread(pid, e.TID) {
				t.Errorf("thread %d of another process ran after %d", e.Dev, e.TID)
			}
		}
	}
	if ran < trips/10 {
		t.Errorf("%d times a thread woke up and ran; there were %d trips", ran, trips)
	}
}

func isThread(pid int, tid uint32) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, tid))
	return err == nil
}

func TestBounds(t *testing.T) {
	e, tracer := loopback(t).connect(t, unix.SOCK_STREAM), tracer(t)
	testwait.Unhindered(t, time.Minute, func(u testing.TB) {
		var from, until, set int64
		log, _ := record(t, tracer, Config{}, func(r *Recording) {
			e.talk(t, trips)
			from = now()
			talk(t, r, e)
			until = now()
			r.Between(from, until)
			set = now()
			e.talk(t, trips)
		})
		counts(u, log)
		for _, e := range log {
			if e.TS < from || e.TS > set { // a switch of threads may come before the bound is set
				t.Errorf("%+v is not between %d and %d", e, from, set)
			}
		}
	})
}

// counts fails if there are not as many requests as trips. A busy machine may send a packet again.
func counts(t testing.TB, log []Event) {
	t.Helper()
	if n := len(requests(log)); n != trips {
		t.Errorf("%d requests, want %d", n, trips)
	}
}

func TestCopies(t *testing.T) {
	e, tracer := bridged(t).connect(t, unix.SOCK_STREAM), tracer(t)
	testwait.Unhindered(t, time.Minute, func(u testing.TB) {
		log, _ := record(t, tracer, Config{Copies: 2}, func(r *Recording) {
			talk(t, r, e)
			second, _ := r.sets[1].log(r.config)
			counts(u, inOrder(second))
		})
		counts(u, log)
	})
}

func TestMissing(t *testing.T) {
	has, err := needs()
	if err != nil {
		pathtest.SkipOrFail(t, "%v", err)
	}
	lacks := func(names ...string) func(string) bool {
		return func(tracepoint string) bool {
			return !slices.Contains(names, tracepoint) && has(tracepoint)
		}
	}
	for _, name := range []string{"net_dev_queue", "netif_receive_skb"} {
		var unsupported *machine.UnsupportedError
		if err := checkLeast(lacks(name)); !errors.As(err, &unsupported) ||
			unsupported.Hint() != instead {
			t.Errorf("without %s: %v", name, err)
		}
	}
	e := loopback(t).connect(t, unix.SOCK_STREAM)
	tracer, err := open(lacks("sk_data_ready", "tcp_probe"))
	if err != nil {
		pathtest.SkipOrFail(t, "%v", err)
	}
	defer tracer.Close()
	if m := tracer.Missing(); !slices.IsSortedFunc(m, func(a, b string) int {
		return slices.IndexFunc(traced, at(tracer, a)) - slices.IndexFunc(traced, at(tracer, b))
	}) || !slices.Contains(m, "sk_data_ready") || !slices.Contains(m, "tcp_probe") {
		t.Errorf("missing: %v", m)
	}
	testwait.Unhindered(t, time.Minute, func(u testing.TB) {
		log, _ := record(t, tracer, Config{}, func(r *Recording) { talk(t, r, e) })
		for _, e := range log {
			if e.Kind == Ready || e.Kind == TCP {
				t.Fatalf("recorded without a tracepoint: %+v", e)
			}
		}
		counts(u, log)
	})
}

func TestFull(t *testing.T) {
	e := loopback(t).connect(t, unix.SOCK_STREAM)
	tracer := tracer(t)
	all, lost := record(t, tracer, Config{}, func(r *Recording) { talk(t, r, e) })
	if len(all) < trips*8 || lost != 0 {
		t.Errorf("%d events and %d lost, want 8 for a trip", len(all), lost)
	}
	for _, c := range []Config{{Events: 10}, {CPUs: []int{}}} {
		log, lost := record(t, tracer, c, func(r *Recording) { talk(t, r, e) })
		if len(log) > c.Events*runtime.NumCPU() || len(log)+lost < trips*8 {
			t.Errorf("%d events and %d lost of about %d", len(log), lost, len(all))
		}
	}
}

func TestForeign(t *testing.T) {
	for _, lay := range []func(testing.TB) network{loopback, loopback6, translated} {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
			e := lay(t).connect(t, kind)
			c := Config{Ports: []uint16{port + 1}, PIDs: []int{1 << 21}}
			log, lost := record(t, tracer(t), c, func(r *Recording) { talk(t, r, e) })
			if len(log)+lost != 0 {
				t.Errorf("%d events and %d lost, of others: %+v", len(log), lost, log)
			}
		}
	}
}

// Another process's programs are seen while they are attached; this tracer's own are not.
func TestOthers(t *testing.T) {
	mine, its := tracer(t), tracer(t)
	testwait.Unhindered(t, time.Minute, func(u testing.TB) { // other tests trace, too
		seen := func() int {
			return len(slices.DeleteFunc(mine.Others(), func(x string) bool {
				return x != "toll_queue at net_dev_queue"
			}))
		}
		attach := func(tracer *Tracer, copies int) *Recording {
			r, err := tracer.Attach(Config{CPUs: []int{0}, Events: 1, Copies: copies})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		before := seen()
		attach(mine, 2)
		if n := seen(); n != before {
			u.Errorf("%d of its own", n-before)
		}
		r := attach(its, 3)
		if n := seen(); n != before+3 {
			u.Errorf("%d of another's three, among %v", n-before, mine.Others())
		}
		if err := r.Stop(); err != nil {
			t.Fatal(err)
		}
		if n := seen(); n != before {
			u.Errorf("%d after its end", n-before)
		}
	})
}

func TestHooks(t *testing.T) {
	n := translated(t)
	e := n.connect(t, unix.SOCK_STREAM)
	tracer := tracer(t)
	fd, err := unix.Open(n.hooks, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	c := Config{Copies: 2, Hooks: []int{fd}} // the second one's priorities are taken
	r, err := tracer.Attach(c)
	if missing := CheckHooks(); missing != nil { // Linux 6.1
		if err == nil || err.Error() != missing.Error() {
			t.Errorf("%v, want %v", err, missing)
		}
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	log, _ := record(t, tracer, c, func(r *Recording) { talk(t, r, e) })
	type step struct {
		Kind
		hook uint32
	}
	const prerouting, forward, postrouting = 0, 2, 4
	want := []step{{HookIn, prerouting}, {NATIn, prerouting}, {NATOut, prerouting},
		{HookOut, prerouting}, {HookIn, forward}, {HookOut, forward}, {HookIn, postrouting},
		{NATIn, postrouting}, {NATOut, postrouting}, {HookOut, postrouting}}
	right := 0
	for _, r := range requests(log) {
		var hooks []step
		for _, e := range r {
			if e.Kind.Hook() {
				hooks = append(hooks, step{e.Kind, e.Dev})
			}
		}
		if slices.Equal(hooks, want) {
			right++
		}
	}
	if right < trips*9/10 {
		t.Errorf("%d of %d requests passed the hooks %v", right, trips, want)
	}
}

// at reports whether a program is on a tracepoint, also if it was left out.
func at(tracer *Tracer, tracepoint string) func(program string) bool {
	all, err := loadObject()
	return func(program string) bool {
		return err == nil && all.Programs[program].AttachTo == tracepoint
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(recordEnv) != "" {
		keepRecording()
	}
	os.Exit(m.Run())
}

const recordEnv = "BRIDGETOLL_TEST_RECORD"

func keepRecording() {
	tracer, err := Open()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	r, err := tracer.Attach(Config{CPUs: []int{0}, Events: 1, Copies: 2})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	r.Between(0, 1<<62)
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until killed
	_ = tracer.Close()
	os.Exit(1)
}

func TestKilled(t *testing.T) {
	tracer(t) // or skip
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), recordEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || said != "ready\n" {
		t.Errorf("%q, %v", said, err)
	}
	programs, maps, links := objects(t, cmd.Process.Pid)
	if len(programs) < 10 || len(maps) < 2 || len(links) < len(programs) {
		t.Errorf("programs %v, maps %v, links %v", programs, maps, links)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	gone := func(_ io.Closer, err error) bool { return errors.Is(err, os.ErrNotExist) }
	testwait.Until(t, time.Minute, "nothing is left", func() bool {
		for _, id := range programs {
			if p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id)); !gone(p, err) {
				p.Close()
				return false
			}
		}
		for _, id := range maps {
			if m, err := ebpf.NewMapFromID(ebpf.MapID(id)); !gone(m, err) {
				m.Close()
				return false
			}
		}
		for _, id := range links {
			if l, err := link.NewFromID(link.ID(id)); !gone(l, err) {
				l.Close()
				return false
			}
		}
		return true
	})
}

// objects returns the numbers of a process's BPF objects.
func objects(t *testing.T, pid int) (programs, maps, links []uint32) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fdinfo", pid)
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		b, _ := os.ReadFile(dir + "/" + e.Name())
		for line := range strings.Lines(string(b)) {
			var id uint32
			if n, _ := fmt.Sscanf(line, "link_id: %d", &id); n == 1 {
				links = append(links, id)
				break // its program's number follows
			}
			if n, _ := fmt.Sscanf(line, "prog_id: %d", &id); n == 1 {
				programs = append(programs, id)
			}
			if n, _ := fmt.Sscanf(line, "map_id: %d", &id); n == 1 {
				maps = append(maps, id)
			}
		}
	}
	return programs, maps, links
}

func tracer(t testing.TB) *Tracer {
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

// record returns the events of all CPUs in the order of time.
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
	if c.Ports == nil {
		c.Ports, c.PIDs = []uint16{port}, []int{os.Getpid()}
	}
	r, err := tracer.Attach(c)
	if err != nil {
		t.Fatal(err)
	}
	f(r)
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	byCPU, lost := r.Log()
	return inOrder(byCPU), lost
}

func inOrder(byCPU [][]Event) []Event {
	log := slices.Concat(byCPU...)
	slices.SortStableFunc(log, func(a, b Event) int { return int(a.TS - b.TS) })
	return log
}

const trips = 200

func talk(t testing.TB, r *Recording, e ends) {
	t.Helper()
	r.Between(now(), now()+int64(time.Hour))
	e.talk(t, trips)
}

func now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

type network struct {
	client, server *netns.NS
	dial           string
	hooks          string // file of a namespace on the way
}

func loopback(t testing.TB) network {
	ns := namespace(t)
	return network{client: ns, server: ns, dial: "127.0.0.1:7000"}
}

func loopback6(t testing.TB) network {
	ns := namespace(t)
	return network{client: ns, server: ns, dial: "[::1]:7000"}
}

func bridged(t testing.TB) network {
	client, host, server := namespace(t), namespace(t), namespace(t)
	ip(t, host, "link add br0 type bridge\nlink set br0 up")
	for i, end := range []*netns.NS{client, server} {
		join(t, host, end, fmt.Sprintf("p%d", i), fmt.Sprintf("172.31.8.%d/24", i+1))
		ip(t, host, fmt.Sprintf("link set p%d master br0", i))
	}
	return network{client: client, server: server, dial: "172.31.8.2:7000"}
}

func tunnelled(t testing.TB) network {
	client, server := namespace(t), namespace(t)
	join(t, client, server, "eth1", "172.31.8.2/24")
	ip(t, client, "addr add 172.31.8.1/24 dev eth1")
	for i, end := range []*netns.NS{client, server} {
		ip(t, end, fmt.Sprintf(`link add vx type vxlan id 7 remote 172.31.8.%d dstport 4789
addr add 172.31.9.%d/24 dev vx
link set vx up`, 2-i, i+1))
	}
	return network{client: client, server: server, dial: "172.31.9.2:7000"}
}

// steered lets any CPU take what a device of the server receives.
func steered(lay func(testing.TB) network, device string) func(testing.TB) network {
	return func(t testing.TB) network {
		n := lay(t)
		if err := n.server.Do(func() error { return devices.RPS.Steer(device, true) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
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
	tid, err := router.TID()
	if err != nil {
		t.Fatal(err)
	}
	return network{client, server, "172.31.8.1:7000", netns.File(tid)}
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
	ns := netnstest.New(t)
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
	if err := errors.Join(e.ask(trips), <-served); err != nil {
		t.Fatal(err)
	}
}

func (e ends) ask(trips int) error   { return repeat(trips, e.client, unix.Write, unix.Read) }
func (e ends) serve(trips int) error { return repeat(trips, e.server, unix.Read, unix.Write) }

func repeat(trips, fd int, calls ...func(fd int, b []byte) (int, error)) error {
	b := []byte{1}
	for range trips {
		for _, call := range calls {
			_, err := call(fd, b)
			for errors.Is(err, unix.EINTR) { // the runtime's signals, which a time-out makes visible
				_, err = call(fd, b)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
