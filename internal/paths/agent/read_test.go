package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func otherClock(t *testing.T, seconds int) []string {
	t.Helper()
	if err := exec.Command("unshare", "--time", "true").Run(); err != nil {
		t.Skipf("no time namespaces: %v", err)
	}
	return []string{"unshare", "--time", "--monotonic", strconv.Itoa(seconds), "--fork",
		"--kill-child"}
}

func TestClock(t *testing.T) {
	s := newSite(t, silence)
	for _, ahead := range []int{0, 1000, 7} {
		n := s.node(setup{id: "n" + strconv.Itoa(ahead), before: otherClock(t, ahead)})
		for range 3 {
			o, err := n.Clock(bounded(t))
			check(t, err)
			off := o.Ahead - time.Duration(ahead)*time.Second
			if off.Abs() > o.Unsure || o.Unsure <= 0 || o.Unsure > 10*time.Second {
				t.Errorf("%d s ahead was found as %s ± %s", ahead, o.Ahead, o.Unsure)
			}
		}
	}
}

// The other clock is 100 s ahead. Slow trips are answered as they end.
func TestCompareClocks(t *testing.T) {
	const slow, fast, ahead = 10 * time.Millisecond, 100 * time.Microsecond, 100 * time.Second
	for name, c := range map[string]struct {
		fastAt      int // trip, from 1; 0: none
		trips, most int
		unsure      time.Duration
	}{
		"fast-at-once": {1, clockTrips, clockTrips, fast / 2},
		"fast-late":    {20, 20, 20, fast / 2},
		"all-slow":     {0, clockTrips + 1, int(clockPatience / slow), slow / 2},
	} {
		t.Run(name, func(t *testing.T) {
			at, trips := time.Duration(0), 0
			o, err := compareClocks(func() int64 { return int64(at) }, func() (int64, error) {
				if trips++; trips == c.fastAt {
					at += fast
				} else {
					at += slow
				}
				return int64(at + ahead), nil
			})
			check(t, err)
			if trips < c.trips || trips > c.most || o.Unsure != c.unsure ||
				(o.Ahead-ahead).Abs() > o.Unsure {
				t.Errorf("%s ± %s after %d trips, want ± %s", o.Ahead, o.Unsure, trips, c.unsure)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	const ms = 1e6
	for _, c := range []struct {
		name          string
		trips         [][3]int64 // before, other, after
		ahead, unsure time.Duration
	}{
		{"one", [][3]int64{{0, 1050 * ms, 100 * ms}}, time.Second, 50 * time.Millisecond},
		{"best-counts", [][3]int64{{0, 1050 * ms, 100 * ms}, {200 * ms, 1201 * ms, 202 * ms}},
			time.Second, time.Millisecond},
		// One request was late, and another trip's answer.
		{"both-narrow", [][3]int64{{0, 1099 * ms, 100 * ms}, {200 * ms, 1201 * ms, 300 * ms}},
			time.Second, time.Millisecond},
		{"behind", [][3]int64{{5000 * ms, 10 * ms, 5020 * ms}}, -5 * time.Second,
			10 * time.Millisecond},
		{"slewed", [][3]int64{{0, 1000, 0}, {10, 1008, 10}}, 999, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bounds
			for _, x := range c.trips {
				b.narrow(x[0], x[1], x[2])
			}
			if o := b.offset(); o.Ahead != c.ahead || o.Unsure != c.unsure {
				t.Errorf("%s ± %s, want %s ± %s", o.Ahead, o.Unsure, c.ahead, c.unsure)
			}
		})
	}
}

func TestMeter(t *testing.T) {
	t.Parallel()
	s := newSite(t, quick)
	b := s.node(setup{id: "b", before: otherClock(t, 500)})
	ctx := bounded(t)
	o, err := b.Clock(ctx)
	check(t, err)
	const window = time.Second
	meter := func(quiet bool, pids ...int) (u path.Use, inTime bool) {
		t.Helper()
		var quietTill int64
		if quiet {
			quietTill = now() + int64(window+settle)
			resume, err := s.hub.Hush(ctx, window)
			check(t, err)
			defer resume()
		}
		from := now() + int64(settle/2)
		use, err := b.Meter(ctx, from+int64(o.Ahead), from+int64(window+o.Ahead), pids...)
		check(t, err)
		inTime = now() < from-int64(o.Unsure) && (!quiet || from+int64(window+o.Unsure) < quietTill)
		time.Sleep(time.Duration(from-now()) + window/2)
		if !quiet {
			_, err := b.Files(ctx, "/")
			check(t, err)
			inTime = inTime && now() < from+int64(window-o.Unsure)
		}
		time.Sleep(time.Duration(from - now() + int64(window+o.Unsure) +
			int64(200*time.Millisecond)))
		u, err = use(ctx)
		check(t, err)
		return u, inTime
	}
	// A busy machine may delay a measurement, so metered repeats it.
	metered := func(quiet bool, pids ...int) (u path.Use) {
		t.Helper()
		testwait.Until(t, testTime, "a window is ordered before it begins", func() (inTime bool) {
			u, inTime = meter(quiet, pids...)
			return inTime
		})
		return u
	}
	u := metered(true, 1)
	if u.Control.Bytes != 0 || len(u.CPUs) == 0 || u.Elapsed < window.Seconds()/2 ||
		len(u.Procs) != 1 {
		t.Errorf("a quiet window: %+v", u)
	}
	all := 0.0
	for _, c := range u.CPUs {
		all += c.Busy() + c.Idle + c.Steal
	}
	if all < u.Elapsed/2 || all > 3*u.Elapsed*float64(len(u.CPUs)) {
		t.Errorf("%g s of CPU time in a window of %g s", all, u.Elapsed)
	}
	if u = metered(false); u.Control.Bytes == 0 || u.Control.Packets == 0 {
		t.Errorf("a word in the window: %+v", u.Control)
	}
	if _, err := b.ask(ctx, request{Use: 99}, 0); err == nil ||
		err.Error() != "node b: no such metering" {
		t.Error(err)
	}
}

func TestMeterWithAnOpenEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	ctx := bounded(t)
	p, err := b.Start(echo())
	check(t, err)
	metered := func(words bool) (u path.Use, most time.Duration, inTime bool) {
		quietTill := now() + int64(time.Second+settle)
		resume, err := s.hub.Hush(ctx, time.Second)
		check(t, err)
		from := now() + int64(300*time.Millisecond)
		use, err := b.Meter(ctx, from, 0)
		check(t, err)
		inTime = now() < from
		began := time.Now()
		time.Sleep(500 * time.Millisecond)
		most = time.Hour
		if words {
			_, err = p.In.Write([]byte("word"))
			check(t, err)
			_, err = io.ReadFull(p.Out, make([]byte, 4))
			check(t, err)
			most = time.Since(began)
			time.Sleep(200 * time.Millisecond)
		}
		u, err = use(ctx)
		check(t, err)
		resume()
		return u, most, inTime && now() < quietTill
	}
	for _, words := range []bool{true, false} {
		var u path.Use
		var most time.Duration
		testwait.Until(t, testTime, "a window is ordered before it begins", func() (inTime bool) {
			u, most, inTime = metered(words)
			return inTime
		})
		// Incoming bytes of the message count, outgoing ones do not.
		if u.Elapsed <= 0 || u.Elapsed > most.Seconds() || words != (u.Control.Bytes > 0) {
			t.Errorf("words %t: %+v in %s", words, u, most)
		}
	}
}

// Requests during a long hush, as in a visit, do not end it.
func TestLongHush(t *testing.T) {
	t.Parallel()
	s := newSite(t, quick)
	b := s.node(setup{id: "b"})
	const long = quick + quick/2
	hushed := time.Now()
	resume, err := s.hub.Hush(bounded(t), long)
	check(t, err)
	_, err = b.Meter(bounded(t), now(), now()+int64(long))
	check(t, err)
	before := s.hub.Moved()
	time.Sleep(long - quick/4)
	// unless a busy machine made it longer
	if n := s.hub.Moved() - before; n != 0 && time.Since(hushed) < long {
		t.Errorf("%d bytes moved in a hush", n)
	}
	resume()
	resume()
	check(t, b.Err())
	if _, err := b.Clock(bounded(t)); err != nil {
		t.Error(err)
	}
	resumed := s.hub.Moved()
	testwait.Until(t, 2*quick, "pings go on", func() bool { return s.hub.Moved() > resumed })
	check(t, b.Err())
}

// Consecutive short hushes may stop every ping.
func TestHushAfterHush(t *testing.T) {
	t.Parallel()
	s := newSite(t, quick)
	b := s.node(setup{id: "b"})
	const short = quick / 60
	last := func() {}
	for end := time.Now().Add(quick + quick/4); time.Now().Before(end); time.Sleep(short) {
		resume, err := s.hub.Hush(bounded(t), 2*short)
		check(t, err)
		last()
		last = resume
	}
	last()
	check(t, b.Err())
	if _, err := b.Clock(bounded(t)); err != nil {
		t.Error(err)
	}
}

// A recent message saves the ping, and a missing answer does not delay the hush.
func TestWhoIsPingedBeforeAHush(t *testing.T) {
	const silence = time.Hour // no ping but these
	k, err := NewKey()
	check(t, err)
	h, err := listen(loopback, k, testVersion, silence)
	check(t, err)
	t.Cleanup(func() { check(t, h.Close()) })
	conn, err := knock(t, h, k, goodHello, nil)
	check(t, err)
	in := bufio.NewReader(conn)
	a, err := h.Wait(bounded(t), "b")
	check(t, err)
	_, err = in.ReadBytes('\n')
	check(t, err)
	hush := func(d time.Duration, want int) (requests []request) {
		t.Helper()
		before := a.number()
		resume, err := h.Hush(bounded(t), d)
		check(t, err)
		defer resume()
		if n := a.number() - before - 1; want == 0 && n > 0 {
			t.Errorf("%d requests before a hush of %s", n, d)
		}
		for range want {
			line, err := in.ReadBytes('\n')
			check(t, err)
			o, err := parseRequest(line)
			check(t, err)
			requests = append(requests, o)
		}
		return requests
	}
	hush(time.Second, 0)
	a.spoken.Add(-int64(silence / 2))
	if o := hush(time.Second, 1)[0]; !o.Ping {
		t.Errorf("after a long time the request %+v", o)
	}
	hush(time.Second, 0)
	check(t, a.Err())
}

func TestCounters(t *testing.T) {
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	inner, err := netns.New()
	check(t, err)
	t.Cleanup(func() { inner.Close() })
	tid, err := inner.TID()
	check(t, err)
	file := "/proc/" + strconv.Itoa(tid) + "/ns/net"
	check(t, b.ns.Do(func() error {
		return errors.Join(link.AddVeth("v0", "c0", tid),
			link.AddAddr("v0", netip.MustParsePrefix("10.8.0.1/24")), link.Up("v0"))
	}))
	check(t, inner.Do(func() error {
		return errors.Join(link.Up("lo"), link.AddAddr("c0", netip.MustParsePrefix("10.8.0.2/24")),
			link.Up("c0"), link.AddDefaultRoute(netip.MustParseAddr("10.8.0.1")))
	}))
	published, server := netip.AddrPortFrom(b.addr, 8080), netip.MustParseAddrPort("10.8.0.2:80")
	check(t, b.ns.Do(func() error {
		return run("sysctl", "-q", "net.ipv4.ip_forward=1")
	}))
	check(t, b.ns.Do(func() error {
		return run(
			"nft",
			"table ip nat { chain pre { type nat hook prerouting priority "+
				"-100; ip daddr "+b.addr.String()+" tcp dport 8080 dnat to 10.8.0.2:80; }; }")
	}))
	echoes(t, inner, server)
	hub := netip.MustParseAddr("10.9.0.1")
	what := []Counter{
		{Namespace: file, Device: &Device{Name: "c0", ForwardRx: true}},
		{Device: &Device{Name: "v0"}},
		{Device: &Device{Name: "v0", OneWay: true}},
		{NAT: &NAT{Proto: "tcp", To: published, Now: server}},
		{NAT: &NAT{Proto: "tcp", To: published, Now: server, From: hub, As: hub}},
		{NAT: &NAT{Proto: "tcp", To: published, Now: server, From: b.addr}},
		{NAT: &NAT{Proto: "tcp", To: published, Now: netip.MustParseAddrPort("10.8.0.3:80")}},
	}
	before, err := b.Counters(bounded(t), what)
	check(t, err)
	const payload = 100_000
	conns := exchange(t, s.ns, published, 2, payload)
	after, err := b.Counters(bounded(t), what)
	check(t, err)
	got := make([]sample.Counters, len(what))
	for i := range what {
		got[i] = after[i].Sub(before[i])
	}
	for i, c := range got[:2] {
		if c.ForwardBytes < 2*payload || c.BackwardBytes < 2*payload || c.ForwardBytes > 3*payload {
			t.Errorf("device %d: %+v", i, c)
		}
	}
	if c := got[2]; c.ForwardBytes < 2*payload || c.BackwardBytes != 0 {
		t.Errorf("one way: %+v", c)
	}
	if got[3].Hits != 2 || got[4].Hits != 2 || got[5].Hits != 0 || got[6].Hits != 0 {
		t.Errorf("rewritten: %+v", got[3:])
	}
	for _, c := range conns {
		c.Close()
	}
	if now, err := b.Counters(bounded(t), what); err != nil || now[3].Hits != after[3].Hits {
		t.Errorf("connections that ended: %+v, %v", now, err)
	}
	for n := range uint64(3) { // the kernel remembers the port that each one uses again
		fromPort(t, s.ns, published, 4000)
		now, err := b.Counters(bounded(t), what)
		check(t, err)
		if want := after[3].Hits + n + 1; now[3].Hits != want || now[4].Hits != want {
			t.Errorf("%d connections from the same port: %+v, want %d", n+1, now[3:5], want)
		}
	}
	if c, err := b.Read(what[0])(); err != nil || c.ForwardBytes < 2*payload {
		t.Errorf("%+v, %v", c, err)
	}
	// Missing things and unreadable ones have different errors.
	if _, err := b.Read(Counter{ESP: &ESP{b.addr, b.addr}})(); !errors.Is(err, ErrNone) ||
		!strings.HasPrefix(err.Error(), "node b: ") {
		t.Errorf("no ESP: %v", err)
	}
	for _, bad := range []Counter{{Device: &Device{Name: "nope"}},
		{Namespace: "/nowhere", Device: &Device{Name: "lo"}}} {
		if _, err := b.Read(bad)(); err == nil || errors.Is(err, ErrNone) ||
			!strings.HasPrefix(err.Error(), "node b: ") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	list, err := b.Interfaces(bounded(t), file)
	check(t, err)
	if len(list) != 2 || list[1].Name != "c0" || list[1].Kind != "veth" || list[1].Peer == 0 ||
		list[1].MTU == 0 || !list[1].Up || !list[1].Uplink ||
		list[1].Where != "node b" || len(list[1].Addrs) == 0 ||
		list[1].Addrs[0].String() != "10.8.0.2/24" || len(list[1].Offloads) == 0 {
		t.Errorf("interfaces %+v", list)
	}
	if cards, crossed, err := b.Cards(bounded(t), "lo"); err != nil || len(cards)+len(crossed) > 0 {
		t.Errorf("the loopback device has the cards %+v, %v", cards, err)
	}
	if _, _, err := b.Cards(bounded(t), "nope"); err == nil ||
		!strings.HasPrefix(err.Error(), "node b: ") {
		t.Errorf("cards of no device: %v", err)
	}
	if names, err := b.Files(bounded(t), "/proc/self"); err != nil ||
		!slices.Contains(names, "oom_score") {
		t.Errorf("%v, %v", names, err)
	}
}

func TestTooMuchForALine(t *testing.T) {
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	dir := t.TempDir()
	for i := range maxLine / 250 {
		check(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%0250d", i)), nil, 0o600))
	}
	_, answered := b.Files(bounded(t), dir)
	_, ordered := b.Files(bounded(t), strings.Repeat("x", maxLine))
	for what, err := range map[string]error{"answer": answered, "request": ordered} {
		if err == nil || !strings.HasPrefix(err.Error(), "node b: "+what+": ") ||
			!strings.HasSuffix(err.Error(), " bytes, at most 1048576 fit into one message") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := encode(answer{ID: 1, Use: &path.Use{Elapsed: math.NaN()}}); err == nil {
		t.Error("JSON has no NaN")
	}
	check(t, b.Err())
	if _, err := b.Clock(bounded(t)); err != nil {
		t.Error(err)
	}
}

func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return errors.New(name + ": " + err.Error() + ": " + string(out))
	}
	return nil
}

func echoes(t *testing.T, ns *netns.NS, at netip.AddrPort) {
	t.Helper()
	check(t, ns.Do(func() error {
		l, err := net.Listen("tcp", at.String())
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Close() })
		go testnet.Accept(l, func(c net.Conn) { _, _ = io.Copy(c, c) })
		return nil
	}))
}

// fromPort makes a connection from the client's port and resets it, which leaves the port free.
func fromPort(t *testing.T, ns *netns.NS, at netip.AddrPort, port int) {
	t.Helper()
	check(t, ns.Do(func() error {
		d := net.Dialer{Timeout: testTime, LocalAddr: &net.TCPAddr{Port: port}}
		d.SetMultipathTCP(false)
		c, err := d.Dial("tcp", at.String())
		if err != nil {
			return err
		}
		return errors.Join(c.(*net.TCPConn).SetLinger(0), c.Close())
	}))
}

func exchange(t *testing.T, ns *netns.NS, at netip.AddrPort, conns, n int) (out []net.Conn) {
	t.Helper()
	check(t, ns.Do(func() error {
		for range conns {
			c, err := net.DialTimeout("tcp", at.String(), testTime)
			if err != nil {
				return err
			}
			out = append(out, c)
		}
		return nil
	}))
	for _, c := range out {
		go func() { _, _ = c.Write(make([]byte, n)) }()
		if _, err := io.ReadFull(c, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestProxyCounter(t *testing.T) {
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	server, published := netip.AddrPortFrom(b.addr, 80), netip.AddrPortFrom(b.addr, 8080)
	echoes(t, b.ns, server)
	self, err := os.Executable()
	check(t, err)
	proxy := exec.Command(self, relayArg, published.String(), server.String())
	out, err := proxy.StdoutPipe()
	check(t, err)
	check(t, b.ns.Start(proxy))
	t.Cleanup(func() { _ = proxy.Process.Kill(); _ = proxy.Wait() })
	_, err = io.ReadFull(out, make([]byte, len("awake\n")))
	check(t, err)
	read := b.Read(Counter{Proxy: &Proxy{PID: proxy.Process.Pid, Listens: published.Port(),
		Target: server}})
	before, err := read()
	check(t, err)
	const payload = 50_000
	conns := exchange(t, s.ns, published, 3, payload)
	for range 2 {
		after, err := read()
		check(t, err)
		// That machine's TCP includes the agent's own connection.
		if got := after.Sub(before); got.ForwardBytes != 3*payload ||
			got.BackwardBytes != 3*payload || got.Hits < 3 || got.Hits > 4 {
			t.Errorf("it relayed %+v", got)
		}
		for _, c := range conns {
			c.Close()
		}
	}
}

func TestMissingCapabilities(t *testing.T) {
	t.Parallel()
	s := newSite(t, silence)
	caps := "-sys_admin,-net_admin,-sys_ptrace"
	b := s.node(setup{id: "b", before: []string{
		"setpriv", "--bounding-set", caps, "--inh-caps", caps}})
	read := func(c Counter) func() error {
		return func() error { _, err := b.Read(c)(); return err }
	}
	inspect := func(s Spot) func() error {
		return func() error { _, err := b.Inspect(s); return err }
	}
	for _, c := range []struct {
		ask   func() error
		lacks string
	}{
		{inspect(Spot{Where: "node b"}), capNet},
		{inspect(Spot{Where: "elsewhere", Namespace: "/proc/1/ns/net"}), capAdmin},
		{read(Counter{Namespace: "/proc/1/ns/net", Device: &Device{Name: "lo"}}), "CAP_"},
		{read(Counter{NAT: &NAT{Proto: "tcp", To: netip.MustParseAddrPort("10.0.0.1:1"),
			Now: netip.MustParseAddrPort("10.0.0.2:2")}}), capNet},
		{read(Counter{ESP: &ESP{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}}),
			capNet},
		{read(Counter{Proxy: &Proxy{PID: 1, Listens: 80,
			Target: netip.MustParseAddrPort("10.0.0.2:2")}}), capPtrace},
	} {
		err := c.ask()
		var u *machine.UnsupportedError
		if !errors.As(err, &u) || !strings.HasPrefix(u.Missing, "node b lacks "+c.lacks) ||
			!strings.HasSuffix(u.Remedy, " (--cap-add)") ||
			!strings.HasPrefix(u.Remedy, "give the agents' containers "+c.lacks) {
			t.Errorf("%s: %v", c.lacks, err)
		}
	}
	// the agent's own devices need no capability
	if _, err := b.Read(Counter{Device: &Device{Name: "eth0"}})(); err != nil {
		t.Error(err)
	}
	if p, err := b.Start(path.Command{Args: []string{echoArg}, Apart: true}); err == nil ||
		!strings.HasPrefix(err.Error(), "node b lacks "+capAdmin+" (start in node b: ") {
		t.Errorf("it started %v: %v", p, err)
	}
	sleeper(t, b)
}

func TestApart(t *testing.T) {
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	p, err := b.Start(path.Command{Args: []string{sleepArg}, Apart: true})
	check(t, err)
	check(t, p.Kill())
	if err := p.Wait(); err == nil {
		t.Error("it ended well")
	}
	gone(t, p.PID)
}

func TestSlowNetwork(t *testing.T) {
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	// netem may be missing; a small queue replaces it.
	for _, at := range []struct {
		ns  *netns.NS
		dev string
	}{{s.ns, b.dev}, {b.ns, "eth0"}} {
		check(t, at.ns.Do(func() error {
			return run("tc", "qdisc", "add", "dev", at.dev, "root", "tbf", "rate", "256kbit",
				"burst", "3000", "latency", "5s")
		}))
	}
	p, err := b.Start(echo())
	check(t, err)
	const n = 30_000
	go func() { _, _ = p.In.Write(make([]byte, n)); _ = p.In.Close() }()
	got, err := io.ReadAll(p.Out)
	if err != nil || len(got) != n {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	check(t, p.Wait())
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	if _, err := b.Clock(ctx); err != nil {
		t.Error(err)
	}
	check(t, b.Err())
}
