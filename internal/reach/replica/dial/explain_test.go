package dial

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

func (l *lan) explain(n *Net, calls ...Call) []replica.Answer {
	l.Helper()
	out, err := n.Explain(l.Context(), calls)
	if err != nil {
		l.Fatal(err)
	}
	return out
}

// way writes steps, each as "<" or ">" for its direction, the namespace, the device, and "+" if it
// leaves there.
func way(steps []replica.Step) string {
	var words []string
	for _, s := range steps {
		word := ">"
		if s.Reply {
			word = "<"
		}
		word += fmt.Sprintf("%d:%s", s.Space, s.Device)
		if s.Out {
			word += "+"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestSteps(t *testing.T) {
	l := newLAN(t)
	l.run(l.machine, `
		iptables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
		iptables -t nat -A POSTROUTING -s 172.17.0.0/16 -o eth0 -j MASQUERADE`)
	n := l.open(
		tcp(inMachine, "0.0.0.0:22"), tcp(inK2, "[::]:80"),
		replica.Socket{Proto: "tcp", Addr: to("0.0.0.0:90"), Relay: to("172.17.0.2:80")},
		replica.Socket{Proto: "udp", Addr: to("0.0.0.0:90"), Relay: to("172.17.0.2:80")},
		udp(inK2, "[::]:80"),
	)
	in := ">-1:eth0+ >0:eth0"
	for _, test := range []struct {
		call Call
		want string
	}{
		{Call{l.other, netip.Addr{}, "tcp", to("192.0.2.10:8080")},
			in + " >0:br0+ >0:veth2+ >1:eth0 <1:eth0+ <0:veth2 <0:br0 <0:eth0+ <-1:eth0"},
		{Call{l.machine, netip.Addr{}, "tcp", to("127.0.0.1:22")}, ">0:lo+ >0:lo <0:lo+ <0:lo"},
		{Call{l.other, netip.Addr{}, "tcp", to("192.0.2.10:90")},
			in + " >0:br0+ >0:veth2+ >1:eth0 <1:eth0+ <0:veth2 <0:br0 <0:eth0+ <-1:eth0"},
		{Call{l.other, netip.Addr{}, "udp", to("192.0.2.10:90")},
			in + " >0:br0+ >0:veth2+ >1:eth0 <1:eth0+ <0:veth2 <0:br0 <0:eth0+ <-1:eth0"},
		{Call{l.k3, netip.Addr{}, "tcp", to("[fd17::2]:80")},
			">2:eth0+ >0:veth3 >0:veth2+ >1:eth0 <1:eth0+ <0:veth2 <0:veth3+ <2:eth0"},
		{Call{l.other, netip.Addr{}, "tcp", to("192.0.2.10:23")}, in + " <0:eth0+ <-1:eth0"},
	} {
		t.Run(test.call.Proto+" "+test.call.To.String(), func(t *testing.T) {
			l := *l
			l.TB = t
			a := l.explain(n, test.call)[0]
			if got := way(a.Steps); got != test.want || a.Lost != nil {
				t.Errorf("%s\n%s, not\n%s\n%+v", a.Outcomes[0].Got, got, test.want, a.Lost)
			}
		})
	}
	first := l.explain(n, Call{l.other, netip.Addr{}, "tcp", to("192.0.2.10:8080")})[0].Steps
	if first[1].Dst != to("192.0.2.10:8080") || first[2].Dst != to("172.17.0.2:80") ||
		first[len(first)-1].Src != to("192.0.2.10:8080") {
		t.Errorf("%+v", first)
	}
}

// twoNetworks gives K2 a second network, by which its answers leave and are filtered.
func twoNetworks(l *lan) {
	l.Helper()
	l.do(l.machine, func() error { return link.AddBridge("br1") })
	l.address(l.machine, "br1", "172.18.0.1/16")
	l.wire(l.machine, "vethb", l.k2, "eth1")
	l.address(l.k2, "eth1", "172.18.0.2/16")
	l.do(l.machine, func() error { return link.SetMaster("vethb", "br1") })
	l.run(l.k2, "ip route replace default via 172.18.0.1")
	l.sysctl(l.machine, "ipv4/conf/br1/rp_filter", "1")
}

func TestLost(t *testing.T) {
	const nowhere = -2
	none := netip.Addr{}
	rule := func(table, chain string, number int, reject bool) *replica.Rule {
		return &replica.Rule{RuleText: replica.RuleText{Table: table, Chain: chain, Number: number},
			Reject: reject}
	}
	from := func(l *lan, proto, addr string) Call { return Call{l.other, none, proto, to(addr)} }
	fromK3 := func(l *lan, proto, addr string) Call { return Call{l.k3, none, proto, to(addr)} }
	local := func(l *lan, proto, addr string) Call { return Call{l.machine, none, proto, to(addr)} }
	const (
		dnat = "iptables -t nat -A PREROUTING -d 192.0.2.10 -p tcp --dport 8080 " +
			"-j DNAT --to 172.17.0.2:80\n"
		output = "iptables -t nat -A OUTPUT -d 192.0.2.10 -p tcp --dport 8080 " +
			"-j DNAT --to 172.17.0.2:80"
		loopback = "iptables -t nat -A OUTPUT -d 127.0.0.1 -p tcp --dport 8080 " +
			"-j DNAT --to 172.17.0.2:80"
	)
	for _, test := range []struct {
		name  string
		build func(*lan)
		call  func(l *lan, proto, addr string) Call
		proto string
		addr  string
		want  replica.Lost
	}{
		{"rule", func(l *lan) {
			l.run(l.machine, `
				iptables -A INPUT -p udp -j ACCEPT
				iptables -A INPUT -p tcp --dport 22 -j DROP`)
		}, from, "tcp", "192.0.2.10:22", replica.Lost{Rule: rule("ip filter", "INPUT", 2, false),
			Device: "eth0"}},
		{"rule of nft", func(l *lan) {
			l.run(l.machine, `
				nft add table inet f
				nft add chain inet f in { type filter hook input priority 0; }
				nft add rule inet f in tcp dport 22 drop`)
		}, from, "tcp", "[fd00::10]:22", replica.Lost{Rule: rule("inet f", "in", 1, false),
			Device: "eth0"}},
		{"policy", func(l *lan) { l.run(l.machine, dnat+"iptables -P FORWARD DROP") },
			from, "tcp", "192.0.2.10:8080",
			replica.Lost{Rule: rule("ip filter", "FORWARD", 0, false), Device: "eth0",
				Dst: to("172.17.0.2:80")}},
		{"rejected", func(l *lan) {
			l.run(l.machine, "iptables -N U\n iptables -A U -j REJECT\n iptables -A INPUT -p udp -j U")
		}, from, "udp", "192.0.2.10:53", replica.Lost{Rule: rule("ip filter", "U", 1, true),
			Device: "eth0"}},
		{"rejected as prohibited", func(l *lan) {
			l.run(l.machine, "iptables -A INPUT -p tcp -j REJECT --reject-with icmp-host-prohibited")
		}, from, "tcp", "192.0.2.10:22", replica.Lost{Rule: rule("ip filter", "INPUT", 1, true),
			Device: "eth0"}},
		{"container's rule", func(l *lan) { l.run(l.k2, "iptables -A INPUT -p tcp --dport 80 -j DROP") },
			local, "tcp", "172.17.0.2:80", replica.Lost{Space: inK2,
				Rule: rule("ip filter", "INPUT", 1, false), Device: "eth0"}},
		{"behind a proxy", func(l *lan) { l.run(l.k2, "iptables -A INPUT -p tcp --dport 80 -j DROP") },
			from, "tcp", "192.0.2.10:90", replica.Lost{Space: inK2,
				Rule: rule("ip filter", "INPUT", 1, false), Device: "eth0"}},
		{"rejected behind a proxy", func(l *lan) {
			l.run(l.k2, "iptables -A INPUT -p tcp --dport 80 -j REJECT")
		}, from, "tcp", "192.0.2.10:90", replica.Lost{Space: inK2,
			Rule: rule("ip filter", "INPUT", 1, true), Device: "eth0"}},
		{"rule at OUTPUT", func(l *lan) { l.run(l.machine, "iptables -A OUTPUT -o br0 -j DROP") },
			local, "tcp", "172.17.0.2:80",
			replica.Lost{Rule: rule("ip filter", "OUTPUT", 1, false)}},
		{"datagram at OUTPUT", func(l *lan) { l.run(l.machine, "iptables -A OUTPUT -o br0 -j DROP") },
			local, "udp", "172.17.0.2:80",
			replica.Lost{Rule: rule("ip filter", "OUTPUT", 1, false)}},
		{"answer dropped", func(l *lan) {
			l.run(l.machine, "iptables -A OUTPUT -p tcp --sport 22 -j DROP")
		}, from, "tcp", "192.0.2.10:22", replica.Lost{Reply: true,
			Rule: rule("ip filter", "OUTPUT", 1, false)}},
		{"legacy rule", func(l *lan) {
			l.run(l.machine, "iptables-legacy -A INPUT -p icmp -j DROP\n"+
				"iptables-legacy -A INPUT -p tcp --dport 22 -j DROP")
		}, from, "tcp", "192.0.2.10:22", replica.Lost{Device: "eth0",
			Rule: rule("iptables-legacy filter", "INPUT", 2, false)}},
		{"answer dropped by a legacy rule", func(l *lan) {
			l.run(l.machine, "iptables-legacy -A INPUT -i br0 -j DROP")
		}, local, "tcp", "172.17.0.2:80", replica.Lost{Device: "br0", Reply: true,
			Rule: rule("iptables-legacy filter", "INPUT", 1, false)}},
		{"rejected by a legacy rule", func(l *lan) {
			l.run(l.machine, "iptables-legacy -A INPUT -p tcp --dport 22 -j REJECT")
		}, from, "tcp", "192.0.2.10:22", replica.Lost{Device: "eth0",
			Rule: rule("iptables-legacy filter", "INPUT", 1, true)}},
		{"legacy policy", func(l *lan) { l.run(l.machine, "ip6tables-legacy -P FORWARD DROP") },
			from, "tcp", "[fd17::2]:80", replica.Lost{Device: "eth0",
				Rule: rule("ip6tables-legacy filter", "FORWARD", 0, false)}},
		{"closed beside a legacy rule", func(l *lan) {
			l.run(l.machine, "iptables-legacy -A INPUT -p udp -j DROP")
		}, from, "tcp", "192.0.2.10:23", replica.Lost{Space: nowhere}},
		{"reverse path", func(l *lan) {
			l.sysctl(l.machine, "ipv4/conf/eth0/rp_filter", "1")
			l.run(l.other, "ip neigh add 192.0.2.10 dev eth0 lladdr "+l.mac(l.machine, "eth0"))
			l.run(l.machine, "ip route add 192.0.2.20/32 dev br0")
		}, from, "tcp", "192.0.2.10:22", replica.Lost{Why: replica.ReversePath, Device: "eth0"}},
		{"neighbour's reverse path", func(l *lan) {
			l.sysctl(l.machine, "ipv4/conf/eth0/rp_filter", "1")
			l.run(l.machine, "ip route add 192.0.2.20/32 dev br0")
		}, from, "tcp", "192.0.2.10:22", replica.Lost{Why: replica.ReversePath, Device: "eth0"}},
		{"reverse path of a second network", func(l *lan) {
			twoNetworks(l)
			l.run(l.machine, dnat)
		}, from, "tcp", "192.0.2.10:8080", replica.Lost{Reply: true, Why: replica.ReversePath,
			Device: "br1"}},
		{"reverse path of a second network, translated here", func(l *lan) {
			twoNetworks(l)
			l.run(l.machine, output)
		}, local, "tcp", "192.0.2.10:8080", replica.Lost{Reply: true, Why: replica.ReversePath,
			Device: "br1"}},
		{"answer's reverse path", func(l *lan) {
			l.sysctl(l.machine, "ipv4/conf/br0/rp_filter", "1")
			l.run(l.machine, `
				iptables -t mangle -A PREROUTING -i eth0 -j MARK --set-mark 1
				ip route add 172.17.0.0/16 dev br0 table 7
				ip rule add fwmark 1 lookup 7
				ip route add 172.17.0.2/32 dev eth0`)
		}, from, "tcp", "172.17.0.2:80", replica.Lost{Reply: true, Why: replica.ReversePath,
			Device: "br0"}},
		{"no route here", func(*lan) {}, from, "tcp", "203.0.113.1:80",
			replica.Lost{Space: -1, Why: replica.NoRoute}},
		{"no route there", func(l *lan) { l.run(l.other, "ip route add 203.0.113.0/24 via 192.0.2.10") },
			from, "udp", "203.0.113.1:80", replica.Lost{Why: replica.NoRoute, Device: "eth0"}},
		{"no route there for IPv6", func(l *lan) {
			l.run(l.other, "ip route add 2001:db8::/64 via fd00::10")
		}, from, "tcp", "[2001:db8::1]:80", replica.Lost{Why: replica.NoRoute, Device: "eth0"}},
		{"no way back", func(l *lan) { l.run(l.k2, "ip route del default") }, from, "tcp",
			"172.17.0.2:80", replica.Lost{Space: inK2, Reply: true, Why: replica.NoRoute,
				Device: "eth0"}},
		{"forwarding", func(l *lan) { l.sysctl(l.machine, "ipv4/ip_forward", "0") }, from, "tcp",
			"172.17.0.2:80", replica.Lost{Why: replica.NotForwarded, Device: "eth0"}},
		{"forwarding of IPv6", func(l *lan) { l.sysctl(l.machine, "ipv6/conf/all/forwarding", "0") },
			from, "tcp", "[fd17::2]:80", replica.Lost{Why: replica.NotForwarded, Device: "eth0"}},
		{"answer elsewhere", func(l *lan) {
			l.run(l.machine, "ip route add default via 192.0.2.20 table 100\n"+
				"ip rule add from 192.0.2.10 lookup 100")
		}, fromK3, "tcp", "192.0.2.10:22", replica.Lost{Reply: true, Why: replica.ReplyElsewhere,
			Device: "eth0"}},
		{"answer untranslated", func(l *lan) { l.run(l.machine, dnat) }, fromK3, "tcp",
			"192.0.2.10:8080", replica.Lost{Space: inK3, Reply: true, Why: replica.ReplyUnnatted,
				Device: "eth0"}},
		{"loopback leaves", func(l *lan) {
			l.run(l.machine, loopback)
		}, local, "tcp", "127.0.0.1:8080", replica.Lost{Why: replica.Localnet}},
		{"loopback leaves by a legacy rule", func(l *lan) {
			l.run(l.machine, "iptables-legacy"+strings.TrimPrefix(loopback, "iptables"))
		}, local, "tcp", "127.0.0.1:8080", replica.Lost{Why: replica.Localnet}},
		{"loopback leaves untranslated", func(l *lan) {
			l.sysctl(l.machine, "ipv4/conf/br0/route_localnet", "1")
			l.run(l.machine, loopback)
		}, local, "tcp", "127.0.0.1:8080", replica.Lost{Space: inK2,
			Why: replica.Localnet, Device: "eth0"}},
		{"answer to loopback of IPv6", func(l *lan) {
			l.run(l.machine, `ip6tables -t nat -A OUTPUT -p tcp --dport 8080 -j DNAT --to [fd17::2]:80
				ip6tables -t nat -A POSTROUTING -o br0 -j MASQUERADE`)
		}, local, "tcp", "[::1]:8080", replica.Lost{Reply: true, Why: replica.Localnet,
			Device: "br0"}},
		{"to loopback", func(l *lan) {
			l.run(l.machine, "iptables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to 127.0.0.1:22")
		}, from, "tcp", "192.0.2.10:8080", replica.Lost{Why: replica.Localnet, Device: "eth0"}},
		{"no route to where a rule leads", func(l *lan) {
			l.run(l.machine, dnat+"ip route add blackhole 172.17.0.2/32")
		}, from, "tcp", "192.0.2.10:8080", replica.Lost{Why: replica.NoRoute, Device: "eth0"}},
		{"no route to where a legacy rule leads", func(l *lan) {
			l.run(l.machine, "iptables-legacy"+strings.TrimPrefix(dnat, "iptables")+
				"ip route add blackhole 172.17.0.2/32")
		}, fromK3, "tcp", "192.0.2.10:8080", replica.Lost{Why: replica.NoRoute, Device: "br0"}},
		{"no route to where a rule leads a frame", func(l *lan) {
			l.sysctl(l.machine, "bridge/bridge-nf-call-iptables", "1")
			l.run(l.machine, dnat+"ip route add blackhole 172.17.0.2/32")
		}, fromK3, "tcp", "192.0.2.10:8080", replica.Lost{Why: replica.NoRoute, Device: "br0"}},
		{"no route to where a rule for IPv6 leads", func(l *lan) {
			l.run(l.machine, `
				ip6tables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to [fd17::2]:80
				ip -6 route add blackhole fd17::2/128`)
		}, from, "tcp", "[fd00::10]:8080", replica.Lost{Why: replica.NoRoute, Device: "eth0",
			Dst: to("[fd17::2]:80")}},
		{"no neighbour", func(l *lan) {}, from, "tcp", "172.17.0.99:80",
			replica.Lost{Why: replica.NoNeighbour, Device: "br0"}},
		{"no neighbour here", func(l *lan) {}, from, "udp", "192.0.2.99:80",
			replica.Lost{Space: -1, Why: replica.NoNeighbour}},
		{"no neighbour of IPv6", func(l *lan) {}, from, "tcp", "[fd17::99]:80",
			replica.Lost{Why: replica.NoNeighbour, Device: "br0"}},
		{"another machine forwards nothing", func(l *lan) {
			l.run(l.machine, "ip route add 203.0.113.0/24 via 192.0.2.20")
			l.sysctl(l.other, "ipv4/ip_forward", "0")
		}, fromK3, "tcp", "203.0.113.1:80", replica.Lost{Device: "eth0", Why: replica.Leaves}},
		{"source port chosen by a rule", func(l *lan) {
			l.run(l.machine, `
				iptables -t nat -A POSTROUTING -p tcp -o br0 -j SNAT --to 172.17.0.1:500-501
				iptables -t mangle -A POSTROUTING -p udp -j DROP`)
			l.run(l.k2, "iptables -A INPUT -p tcp --dport 80 -j DROP")
		}, local, "tcp", "172.17.0.2:80", replica.Lost{Space: inK2,
			Rule: rule("ip filter", "INPUT", 1, false), Device: "eth0"}},
		{"another answers nobody", func(l *lan) {
			l.run(l.machine, "ip neigh add 192.0.2.77 lladdr 02:00:00:00:00:77 dev eth0")
		}, local, "udp", "192.0.2.77:80", replica.Lost{Device: "eth0", Why: replica.Leaves}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLAN(t)
			test.build(l)
			n := l.open(tcp(inMachine, "0.0.0.0:22"), tcp(inMachine, "[::]:22"),
				udp(inMachine, "0.0.0.0:53"), tcp(inK2, "[::]:80"), udp(inK2, "[::]:80"),
				replica.Socket{Proto: "tcp", Addr: to("0.0.0.0:90"), Relay: to("172.17.0.2:80")})
			a := l.explain(n, test.call(l, test.proto, test.addr))[0]
			want := &test.want
			if want.Space == nowhere {
				want = nil
			}
			if a.Lost != nil && !test.want.Dst.IsValid() {
				a.Lost.Dst = netip.AddrPort{}
			}
			equal := cmpopts.EquateComparable(netip.AddrPort{})
			if diff := cmp.Diff(want, a.Lost, equal); diff != "" {
				t.Errorf("%+v\n%s\n%s", a.Outcomes[0], way(a.Steps), diff)
			}
		})
	}
}

func (l *lan) mac(ns *netns.NS, device string) (mac string) {
	l.do(ns, func() error {
		d, err := net.InterfaceByName(device)
		if err == nil {
			mac = d.HardwareAddr.String()
		}
		return err
	})
	return mac
}

func TestExplainMany(t *testing.T) {
	l := newLAN(t)
	l.run(l.machine, `iptables -A INPUT -p tcp --dport 7000:8000 -j DROP`)
	n := l.open(tcp(inMachine, "0.0.0.0:22"))
	var calls []Call
	for i := range 600 {
		from := []*netns.NS{l.other, l.k2, l.k3}[i%3]
		calls = append(calls, Call{from, netip.Addr{}, "tcp", to(fmt.Sprintf("192.0.2.10:%d", 7000+i))})
	}
	for i, a := range l.explain(n, calls...) {
		if a.Lost == nil || a.Lost.Rule == nil || a.Lost.Rule.Number != 1 || len(a.Steps) < 2 {
			t.Fatalf("%d: %+v, %s", i, a.Lost, way(a.Steps))
		}
	}
}

// A drop is noticed also where another rule has changed the client's address before.
func TestDropIsNoticedBehindNAT(t *testing.T) {
	l := newLAN(t)
	l.run(l.machine, `iptables -t nat -A POSTROUTING -o lo -p tcp -j SNAT --to-source 192.0.2.10
		iptables -A INPUT -p tcp --dport 22 -j DROP`)
	n := l.open(tcp(inMachine, "0.0.0.0:22"))
	calls := []Call{{l.machine, netip.Addr{}, "tcp", to("172.17.0.1:22")}}
	if err := n.prepare(calls); err != nil {
		t.Fatal(err)
	}
	w, err := n.watch(calls)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	all, err := w.observe(t.Context(), []*attempt{{Call: calls[0]}}, wait)
	if err != nil {
		t.Fatal(err)
	}
	if f := all[0]; f.attempt.out.Got != replica.Timeout || !f.dropped {
		t.Errorf("%s, noticed %t: %+v", f.attempt.out.Got, f.dropped, f.events)
	}
}
