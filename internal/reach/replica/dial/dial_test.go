package dial

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

// lan is a machine with two containers at a bridge, and another machine on its wire.
type lan struct {
	testing.TB
	machine, k2, k3, other *netns.NS
	lock                   string
}

const (
	inMachine = iota
	inK2
	inK3
)

var (
	ip = netip.MustParseAddr
	to = netip.MustParseAddrPort
)

func newLAN(t testing.TB) *lan {
	t.Helper()
	l := &lan{TB: t, lock: t.TempDir() + "/lock"}
	for _, ns := range []**netns.NS{&l.machine, &l.k2, &l.k3, &l.other} {
		made := netnstest.New(t)
		*ns = made
		l.do(made, func() error {
			// A namespace starts with settings of the machine.
			for file, value := range map[string]string{"ipv4/conf/all/rp_filter": "0",
				"ipv4/conf/default/rp_filter": "0", "ipv6/conf/default/accept_dad": "0",
				"ipv4/icmp_ratemask": "0"} {
				if err := os.WriteFile("/proc/sys/net/"+file, []byte(value), 0); err != nil {
					return err
				}
			}
			return link.Up("lo")
		})
	}
	l.wire(l.machine, "eth0", l.other, "eth0")
	l.do(l.machine, func() error { return link.AddBridge("br0") })
	l.address(l.machine, "br0", "172.17.0.1/16", "fd17::1/64")
	l.address(l.machine, "eth0", "192.0.2.10/24", "fd00::10/64")
	l.address(l.other, "eth0", "192.0.2.20/24", "fd00::20/64")
	for i, k := range []*netns.NS{l.k2, l.k3} {
		port := []string{"veth2", "veth3"}[i]
		l.wire(l.machine, port, k, "eth0")
		l.do(l.machine, func() error { return link.SetMaster(port, "br0") })
		l.address(k, "eth0", []string{"172.17.0.2/16", "172.17.0.3/16"}[i],
			[]string{"fd17::2/64", "fd17::3/64"}[i])
		l.do(k, func() error {
			return errors.Join(link.AddDefaultRoute(ip("172.17.0.1")),
				link.AddDefaultRoute(ip("fd17::1")))
		})
	}
	l.sysctl(l.machine, "ipv4/ip_forward", "1")
	if _, err := os.Stat("/proc/sys/net/bridge"); err == nil { // else frames are translated
		l.sysctl(l.machine, "bridge/bridge-nf-call-iptables", "0")
		l.sysctl(l.machine, "bridge/bridge-nf-call-ip6tables", "0")
	}
	l.sysctl(l.machine, "ipv6/conf/all/forwarding", "1")
	l.do(l.other, func() error {
		return errors.Join(link.AddRoute(netip.MustParsePrefix("172.17.0.0/16"), ip("192.0.2.10")),
			link.AddRoute(netip.MustParsePrefix("fd17::/64"), ip("fd00::10")))
	})
	return l
}

func (l *lan) do(ns *netns.NS, f func() error) {
	l.Helper()
	if err := ns.Do(f); err != nil {
		l.Fatal(err)
	}
}

func (l *lan) wire(a *netns.NS, name string, b *netns.NS, peer string) {
	l.Helper()
	tid, err := b.TID()
	if err != nil {
		l.Fatal(err)
	}
	l.do(a, func() error { return errors.Join(link.AddVeth(name, peer, tid), link.Up(name)) })
	l.do(b, func() error { return link.Up(peer) })
}

func (l *lan) address(ns *netns.NS, device string, all ...string) {
	l.Helper()
	for _, a := range all {
		l.do(ns, func() error { return link.AddAddr(device, netip.MustParsePrefix(a)) })
	}
}

func (l *lan) sysctl(ns *netns.NS, file, value string) {
	l.Helper()
	l.do(ns, func() error { return os.WriteFile("/proc/sys/net/"+file, []byte(value), 0) })
}

// run runs commands, one a line, in a namespace.
func (l *lan) run(ns *netns.NS, commands string) {
	l.Helper()
	for line := range strings.Lines(commands) {
		args := strings.Fields(line)
		if len(args) == 0 {
			continue
		}
		if _, err := exec.LookPath(args[0]); err != nil {
			l.Skip(err)
		}
		l.do(ns, func() error {
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "XTABLES_LOCKFILE="+l.lock)
			out, err := cmd.CombinedOutput()
			if err != nil {
				l.Errorf("%s: %s", strings.TrimSpace(line), out)
			}
			return err
		})
	}
}

func (l *lan) open(sockets ...replica.Socket) *Net {
	l.Helper()
	n, err := Open([]*netns.NS{l.machine, l.k2, l.k3}, sockets)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { n.Close() })
	for i, err := range n.Failed() {
		l.Errorf("stand-in %d: %v", i, err)
	}
	return n
}

func (l *lan) dial(n *Net, calls ...Call) [][]replica.Outcome {
	l.Helper()
	out, err := n.Dial(l.Context(), calls, 1)
	if err != nil {
		l.Fatal(err)
	}
	return out
}

func tcp(space int, addr string) replica.Socket {
	return replica.Socket{Space: space, Proto: "tcp", Addr: to(addr)}
}

func udp(space int, addr string) replica.Socket {
	return replica.Socket{Space: space, Proto: "udp", Addr: to(addr)}
}

func TestDial(t *testing.T) {
	l := newLAN(t)
	l.run(l.machine, `
		iptables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
		iptables -t nat -A POSTROUTING -s 172.17.0.0/16 -o eth0 -j MASQUERADE
		iptables -A INPUT -p tcp --dport 7000 -j DROP
		iptables -A INPUT -p udp --dport 7000 -j DROP
		iptables -A INPUT -p tcp --dport 7001 -j REJECT --reject-with tcp-reset
		iptables -A INPUT -p udp --dport 7001 -j REJECT
		iptables -A INPUT -p tcp --dport 7002 -j REJECT --reject-with icmp-host-prohibited
		iptables -A INPUT -p udp --dport 7002 -j REJECT --reject-with icmp-host-prohibited
		iptables -A OUTPUT -p udp --dport 7003 -j DROP`)
	l.run(l.k3, `iptables -A INPUT -p tcp --dport 81 -j DROP`)
	relay := func(proto, addr, target string) replica.Socket {
		return replica.Socket{Proto: proto, Addr: to(addr), Relay: to(target)}
	}
	n := l.open(
		tcp(inMachine, "0.0.0.0:22"), // 0
		tcp(inK2, "[::]:80"),
		relay("tcp", "0.0.0.0:90", "172.17.0.2:80"), // 2
		relay("tcp", "0.0.0.0:91", "172.17.0.2:79"),
		relay("tcp", "0.0.0.0:92", "172.17.0.3:81"), // 4
		tcp(inK3, "0.0.0.0:81"),
		udp(inMachine, "0.0.0.0:53"), // 6
		udp(inK2, "[::]:53"),
		relay("udp", "[::]:5353", "172.17.0.2:53"), // 8
		tcp(inMachine, "198.51.100.1:22"),
		replica.Socket{Proto: "tcp", Addr: to("[::]:60"), V6Only: true}, // 10
		replica.Socket{Proto: "tcp", Addr: to("0.0.0.0:61"), Device: "eth0"},
		relay("tcp", "[::]:93", "192.0.2.10:90"), // 12
		tcp(inMachine, "0.0.0.0:7000"),
		udp(inMachine, "0.0.0.0:7000"), // 14
		udp(inMachine, "0.0.0.0:7001"),
		tcp(inMachine, "127.0.0.1:6379"), // 16
		udp(inMachine, "[::]:7004"),
	)
	// Another machine cannot tell that this address is the machine's.
	l.address(l.machine, "eth0", "192.0.2.11/24")
	m, k, c := l.machine, l.k2, l.other
	const docker, lan = "172.17.0.1", "192.0.2.20"
	yes := func(socket int, source, seen string, relays ...int) replica.Outcome {
		return replica.Outcome{Got: replica.Connected, Source: ip(source), Socket: socket,
			Seen: ip(seen), Relays: relays}
	}
	no := func(got replica.Got, source string) replica.Outcome {
		return replica.Outcome{Got: got, Source: ip(source), Socket: -1}
	}
	elsewhere := yes(6, lan, lan)
	elsewhere.From = to("192.0.2.10:53")
	elsewhere6 := yes(17, "fd17::2", "fd17::2")
	elsewhere6.From = to("[fd17::1]:7004")
	for _, test := range []struct {
		call Call
		want replica.Outcome
	}{
		{Call{m, netip.Addr{}, "tcp", to("127.0.0.1:22")}, yes(0, "127.0.0.1", "127.0.0.1")},
		{Call{m, ip("192.0.2.10"), "tcp", to("127.0.0.1:22")}, yes(0, "192.0.2.10", "192.0.2.10")},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.10:22")}, yes(0, lan, lan)},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.10:8080")}, yes(1, lan, lan)},
		{Call{c, netip.Addr{}, "tcp", to("[fd17::2]:80")}, yes(1, "fd00::20", "fd00::20")},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.10:90")}, yes(1, lan, docker, 2)},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.10:91")}, no(replica.Closed, lan)},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.10:92")}, no(replica.Silent, lan)},
		{Call{c, netip.Addr{}, "tcp", to("[fd00::10]:93")}, yes(1, "fd00::20", docker, 12, 2)},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.10:94")}, no(replica.Refused, lan)},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.10:60")}, no(replica.Refused, lan)},
		{Call{c, netip.Addr{}, "tcp", to("[fd00::10]:60")}, yes(10, "fd00::20", "fd00::20")},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.10:61")}, yes(11, lan, lan)},
		{Call{k, netip.Addr{}, "tcp", to("192.0.2.10:61")}, no(replica.Refused, "172.17.0.2")},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.10:6379")}, no(replica.Refused, lan)},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.10:7000")}, no(replica.Timeout, lan)},
		{Call{c, netip.Addr{}, "udp", to("192.0.2.10:7000")}, no(replica.Timeout, lan)},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.10:7001")}, no(replica.Refused, lan)},
		{Call{c, netip.Addr{}, "udp", to("192.0.2.10:7001")}, no(replica.Refused, lan)},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.10:7002")}, no(replica.Unreachable, lan)},
		{Call{c, netip.Addr{}, "udp", to("192.0.2.10:7002")}, no(replica.Unreachable, lan)},
		{Call{m, netip.Addr{}, "udp", to("192.0.2.20:7003")}, no(replica.Timeout, "192.0.2.10")},
		{Call{c, netip.Addr{}, "udp", to("192.0.2.10:53")}, yes(6, lan, lan)},
		{Call{c, netip.Addr{}, "udp", to("192.0.2.11:53")}, elsewhere},
		{Call{k, netip.Addr{}, "udp", to("[fd00::10]:7004")}, elsewhere6},
		{Call{k, ip("fd17::2"), "udp", to("[fd00::10]:7004")}, elsewhere6},
		{Call{k, netip.Addr{}, "udp", to("[fd00::10]:7005")}, no(replica.Refused, "fd17::2")},
		{Call{c, netip.Addr{}, "udp", to("[fd17::2]:53")}, yes(7, "fd00::20", "fd00::20")},
		{Call{c, netip.Addr{}, "udp", to("192.0.2.10:5353")}, yes(7, lan, docker, 8)},
		{Call{c, netip.Addr{}, "udp", to("192.0.2.10:54")}, no(replica.Refused, lan)},
		{Call{c, netip.Addr{}, "tcp", to("192.0.2.99:22")}, no(replica.Unreachable, lan)},
		{Call{k, netip.Addr{}, "udp", to("192.0.2.99:22")}, no(replica.Unreachable, "172.17.0.2")},
		{Call{c, ip("192.0.2.21"), "tcp", to("192.0.2.10:22")},
			replica.Outcome{Got: replica.Failed, Socket: -1}},
		{Call{c, netip.Addr{}, "tcp", to("203.0.113.1:22")},
			replica.Outcome{Got: replica.Unreachable, Socket: -1}},
	} {
		t.Run(test.call.Proto+" "+test.call.To.String()+" "+string(test.want.Got), func(t *testing.T) {
			l := *l
			l.TB = t
			got := l.dial(n, test.call)
			if len(got[0]) == 1 && test.want.Got != replica.Connected {
				if (got[0][0].Err == "") != (test.want.Got == replica.Timeout ||
					test.want.Got == replica.Silent || test.want.Got == replica.Closed) &&
					test.call.To.Port() != 7003 {
					t.Errorf("error %q", got[0][0].Err)
				}
				got[0][0].Err = ""
			}
			if diff := cmp.Diff([][]replica.Outcome{{test.want}}, got, exactly); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a relay to itself", func(t *testing.T) {
		l := newLAN(t)
		self := netip.MustParseAddrPort("127.0.0.1:90")
		n := l.open(replica.Socket{Proto: "tcp", Addr: self, Relay: self},
			replica.Socket{Proto: "udp", Addr: self, Relay: self}, tcp(inMachine, "0.0.0.0:22"))
		for _, proto := range []string{"tcp", "udp"} {
			got := l.dial(n, Call{l.machine, netip.Addr{}, proto, self})
			if g := got[0][0].Got; g != replica.Closed && g != replica.Timeout {
				t.Errorf("%s: %+v", proto, got)
			}
		}
		got := l.dial(n, Call{l.machine, netip.Addr{}, "tcp", to("127.0.0.1:22")})
		if got[0][0].Got != replica.Connected {
			t.Errorf("then: %+v", got)
		}
	})
	t.Run("failed", func(t *testing.T) {
		bad, err := Open([]*netns.NS{m}, []replica.Socket{{Proto: "tcp", Addr: to("0.0.0.0:1"),
			Device: "none"}})
		if err != nil {
			t.Fatal(err)
		}
		defer bad.Close()
		if !errors.Is(bad.Failed()[0], unix.ENODEV) {
			t.Errorf("without its device: %v", bad.Failed())
		}
	})
}

var exactly = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })}

func TestExchange(t *testing.T) {
	l := newLAN(t)
	l.run(l.machine, `
		iptables -A OUTPUT -p tcp --dport 81 -m length --length 1400:65535 -j DROP
		iptables -A OUTPUT -p tcp --sport 40000 -j REJECT --reject-with tcp-reset`)
	n := l.open(tcp(inK2, "0.0.0.0:80"), tcp(inK2, "0.0.0.0:81"),
		replica.Socket{Proto: "tcp", Addr: to("0.0.0.0:90"), Relay: to("172.17.0.2:80")},
		replica.Socket{Proto: "tcp", Addr: to("0.0.0.0:91"), Relay: to("172.17.0.2:81")})
	for _, c := range []struct {
		to   string
		port uint16
		want replica.Got
	}{
		{"172.17.0.2:80", 40002, replica.Connected},
		{"172.17.0.2:80", 40000, replica.Refused},
		{"172.17.0.2:81", 40002, replica.Silent},
		{"127.0.0.1:90", 40002, replica.Connected},
		{"127.0.0.1:91", 40002, replica.Silent},
	} {
		calls := []Call{{From: l.machine, Proto: "tcp", To: to(c.to)}}
		got, err := n.Exchange(l.Context(), calls, []uint16{c.port}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(got[0]) != 1 || got[0][0].Got != c.want {
			t.Errorf("%+v: %+v", c, got[0])
		}
		if short := l.dial(n, calls...)[0]; short[0].Got != replica.Connected {
			t.Errorf("%+v: little data: %+v", c, short)
		}
	}
}

// Exchanges at the same time all use exactly the port that was asked for.
func TestExchangePorts(t *testing.T) {
	l := newLAN(t)
	for _, tables := range []string{"iptables", "ip6tables"} {
		l.run(l.machine, tables+` -A OUTPUT -p tcp --dport 80:90 ! --sport 40002 -j DROP`)
		l.run(l.machine, tables+` -A OUTPUT -o br0 -p tcp --dport 80 -j ACCEPT`)
		l.run(l.machine, tables+` -A OUTPUT -o br0 -p tcp --dport 81 --sport 1000:65000 -j ACCEPT`)
	}
	l.run(l.machine, `iptables -I OUTPUT -o br0 -p tcp --dport 81 -j ACCEPT`)
	n := l.open(tcp(inK2, "0.0.0.0:80"), tcp(inK2, "[::]:82"), tcp(inK2, "0.0.0.0:81"),
		replica.Socket{Proto: "tcp", Addr: to("0.0.0.0:90"), Relay: to("172.17.0.2:81")},
		replica.Socket{Proto: "tcp", Addr: to("[::]:90"), V6Only: true, Relay: to("172.17.0.2:81")})
	var calls []Call
	var ports []uint16
	for _, at := range []string{"172.17.0.2:80", "[fd17::2]:82", "127.0.0.1:90", "[::1]:90"} {
		calls = append(calls, Call{From: l.machine, Proto: "tcp", To: to(at)})
		ports = append(ports, 40002)
	}
	const times = 2
	all, err := n.Exchange(t.Context(), calls, ports, times)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range all {
		if len(got) != 1 || got[0].Got != replica.Connected {
			t.Errorf("%s: %+v", calls[i].To, got)
		}
	}
	var held int
	l.do(l.machine, func() (err error) {
		if held, err = newSocket("tcp", ip("0.0.0.0")); err == nil {
			err = unix.Bind(held, &unix.SockaddrInet4{Port: 40002})
		}
		return err
	})
	defer unix.Close(held)
	all, err = n.Exchange(t.Context(), calls[:1], ports[:1], 1)
	if err != nil || all[0][0].Got != replica.Failed ||
		all[0][0].Err != "bind to port 40002: address already in use" {
		t.Errorf("a port that is in use: %+v, %v", all, err)
	}
}

// An exchange ends only when both sides have ended the connection, and its loss is explained.
func TestExchangeExplained(t *testing.T) {
	l := newLAN(t)
	n := l.open(tcp(inK2, "0.0.0.0:80"),
		replica.Socket{Proto: "tcp", Addr: to("0.0.0.0:90"), Relay: to("172.17.0.2:80")})
	const direct, relayed = "172.17.0.2:80", "127.0.0.1:90"
	for _, tt := range []struct {
		chain, rule, at string
		any, rejects    bool // any data is lost, not only much
	}{
		{"OUTPUT", "-o br0 -p tcp --tcp-flags FIN FIN -j DROP", direct, false, false},
		{"INPUT", "-i br0 -p tcp --tcp-flags FIN FIN -j DROP", direct, false, false},
		{"OUTPUT", "-o br0 -p tcp --tcp-flags PSH,FIN PSH -j DROP", direct, true, false},
		{"OUTPUT", "-o br0 -p tcp -m length --length 1400:65535 -j DROP", direct, false, false},
		{"OUTPUT", "-o br0 -p tcp -m length --length 1400:65535 -j REJECT --reject-with tcp-reset",
			direct, false, true},
		{"OUTPUT", "-o lo -p tcp --dport 90 --tcp-flags FIN FIN -j DROP", relayed, false, false},
		{"OUTPUT", "-o lo -p tcp --dport 90 --tcp-flags PSH,FIN PSH -j DROP", relayed, true, false},
		{"OUTPUT", "-o lo -p tcp -m length --length 300:600 -j DROP", relayed, false, false},
		{"INPUT", "-i br0 -p tcp -m length --length 1400:65535 -j DROP", direct, false, false},
	} {
		rule := tt.chain + " " + tt.rule
		calls := []Call{{From: l.machine, Proto: "tcp", To: to(tt.at)}}
		l.run(l.machine, "iptables -I "+rule)
		if short := l.dial(n, calls...)[0]; short[0].Got != replica.Connected && !tt.any {
			t.Errorf("%s: little data: %+v", rule, short)
		}
		got, err := n.Exchange(t.Context(), calls, []uint16{40002}, 1)
		if err != nil || got[0][0].Got == replica.Connected {
			t.Errorf("%s: %+v, %v", rule, got, err)
		}
		why, err := n.ExplainExchange(t.Context(), calls, []uint16{40002})
		if err != nil {
			t.Fatal(err)
		}
		r := why[0].Lost
		if r == nil || r.Space != inMachine || r.Rule == nil || r.Rule.Chain != tt.chain ||
			r.Rule.Number != 1 || r.Rule.Reject != tt.rejects {
			t.Errorf("%s: %+v", rule, why[0])
		}
		l.run(l.machine, "iptables -D "+rule)
	}
}

// A relay without a port of its own is told from one whose target does not answer.
func TestRelayWithoutPort(t *testing.T) {
	l := newLAN(t)
	l.sysctl(l.machine, "ipv4/ip_local_port_range", "40000 40000")
	n := l.open(tcp(inK2, "0.0.0.0:80"),
		replica.Socket{Proto: "tcp", Addr: to("0.0.0.0:90"), Relay: to("172.17.0.2:80")})
	calls := []Call{{From: l.machine, Proto: "tcp", To: to("127.0.0.1:90")}}
	got, err := n.Exchange(t.Context(), calls, []uint16{40000}, 1)
	if want := "docker-proxy's connection: no local address or port is free " +
		"(net.ipv4.ip_local_port_range)"; err != nil || got[0][0].Got != replica.Failed ||
		got[0][0].Err != want {
		t.Errorf("%+v, %v: %q, want %q", got, err, got[0][0].Err, want)
	}
}

func TestInvalid(t *testing.T) {
	l := newLAN(t)
	n := l.open()
	for _, c := range []Call{{From: l.machine, Proto: "tcp"},
		{From: l.machine, Proto: "sctp", To: to("192.0.2.1:1")},
		{From: l.machine, Proto: "udp", To: to("[fe80::1%none]:1")}} {
		if got := l.dial(n, c); got[0][0].Got != replica.Failed || got[0][0].Err == "" {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	bad, err := Open([]*netns.NS{l.machine}, []replica.Socket{{Proto: "tcp"}, {Proto: "tcp",
		Addr: to("127.0.0.1:1"), Relay: to("[fe80::1%none]:1")}})
	if err != nil || bad.Failed()[0] == nil {
		t.Fatalf("%v, %v", bad.Failed(), err)
	}
	got := l.dial(bad, Call{From: l.machine, Proto: "tcp", To: to("127.0.0.1:1")})
	if got[0][0].Got != replica.Closed {
		t.Errorf("%+v", got)
	}
	bad.Close()
	unanswered := []Call{{From: l.other, Proto: "udp", To: to("192.0.2.10:1")}}
	if _, err := bad.Dial(t.Context(), unanswered, 1); err == nil {
		t.Error("a closed Net dials")
	}
}

// While the stand-ins do not run, no dial is lost.
func TestBusy(t *testing.T) {
	l := newLAN(t)
	n := l.open(replica.Socket{Proto: "tcp", Addr: to("0.0.0.0:90"), Relay: to("172.17.0.2:80")},
		tcp(inK2, "0.0.0.0:80"))
	n.server.mu.Lock() // the relay cannot note its connection
	done := make(chan [][]replica.Outcome)
	go func() {
		out, err := n.Dial(t.Context(), []Call{{l.other, netip.Addr{}, "tcp", to("192.0.2.10:90")}}, 1)
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	select {
	case <-done:
		t.Error("it does not wait")
		n.server.mu.Unlock()
		return
	case <-time.After(3 * (firstWait + wait)):
	}
	n.server.mu.Unlock()
	if out := <-done; out[0][0].Got != replica.Connected {
		t.Errorf("%+v", out)
	}
}

func TestMany(t *testing.T) {
	l := newLAN(t)
	l.run(l.machine, `iptables -A INPUT -p tcp --dport 7000 -j DROP`)
	n := l.open(tcp(inMachine, "0.0.0.0:22"), tcp(inMachine, "0.0.0.0:7000"), udp(inK2, "0.0.0.0:53"))
	var calls []Call
	for range 2000 {
		calls = append(calls, Call{l.other, netip.Addr{}, "tcp", to("192.0.2.10:22")},
			Call{l.machine, netip.Addr{}, "udp", to("172.17.0.2:53")},
			Call{l.k2, netip.Addr{}, "tcp", to("192.0.2.10:7000")})
	}
	for i, got := range l.dial(n, calls...) {
		want := []replica.Got{replica.Connected, replica.Connected, replica.Timeout}[i%3]
		if len(got) != 1 || got[0].Got != want {
			t.Fatalf("dial %d: %+v, not %s", i, got, want)
		}
	}
}

func TestDialRandom(t *testing.T) {
	l := newLAN(t)
	l.run(l.machine, `
		iptables -t nat -N PODS
		iptables -t nat -N K2
		iptables -t nat -A PREROUTING -p tcp --dport 80 -j PODS
		iptables -t nat -A PODS -p tcp -m statistic --mode nth --every 3 --packet 0 -j K2
		iptables -t nat -A K2 -p tcp -j DNAT --to 172.17.0.2
		iptables -t nat -A PODS -p tcp -j DNAT --to 172.17.0.3`)
	n := l.open(tcp(inK2, "0.0.0.0:80"), tcp(inK3, "0.0.0.0:80"))
	out, err := n.Dial(t.Context(), []Call{{l.other, netip.Addr{}, "tcp", to("192.0.2.10:80")}}, 7)
	if err != nil {
		t.Fatal(err)
	}
	if len(out[0]) != 2 || out[0][0].Socket != 1 || out[0][1].Socket != 0 {
		t.Errorf("%+v", out)
	}
}

func TestDistinct(t *testing.T) {
	a, b := replica.Outcome{Socket: 1}, replica.Outcome{Socket: 2}
	c := replica.Outcome{Relays: []int{1}}
	got := distinct([]replica.Outcome{a, b, c, c, b, c})
	if !slices.EqualFunc(got, []replica.Outcome{c, b, a}, func(a, b replica.Outcome) bool {
		return a.Socket == b.Socket
	}) {
		t.Errorf("%+v", got)
	}
}

// TestLateStandIns sends datagrams to a stand-in while all are stopped: by a relay, which has to
// wait for the test.
func TestLateStandIns(t *testing.T) {
	l := newLAN(t)
	relay := udp(inMachine, "0.0.0.0:5300")
	relay.Relay = to("172.17.0.2:53")
	n := l.open(udp(inK2, "0.0.0.0:53"), relay)
	calls := []Call{{l.machine, netip.Addr{}, "udp", to("172.17.0.1:5300")}}
	for range 2000 { // many more than the stand-in's buffer holds
		calls = append(calls, Call{l.machine, netip.Addr{}, "udp", to("172.17.0.2:53")})
	}
	n.server.mu.Lock()
	time.AfterFunc(300*time.Millisecond, n.server.mu.Unlock)
	out, again, err := n.DialQuickly(l.Context(), calls, 1)
	if err != nil || len(again) > 0 {
		t.Fatalf("%d of %d calls had no certain outcome, %v: %+v", len(again), len(calls), err, out[0])
	}
}
