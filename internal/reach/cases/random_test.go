package cases

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

var (
	randomMachines = flag.Int("random", 2, "random machines for TestRandomMachines")
	firstRandom    = flag.Int("first", 0, "the number of the first of them")
	eachOddity     = flag.Bool("oddities", false, "try each oddity alone, as make test-machines does")
)

// oddities are commands on a random machine. $P is a port of the machine's programs, $Q a published
// port, $C a container's address and $D its port, $N an address that a client may have, $S one of a
// few settings' values.
var oddities = []string{
	"iptables -A INPUT -p tcp --dport $P -j DROP",
	"iptables -A INPUT -p tcp --dport $P -s $N -j REJECT",
	"iptables -A INPUT -i docker0 -p tcp -m multiport --dports $P,9009 -j DROP",
	"iptables -P INPUT DROP; iptables -A INPUT -p tcp --dport $P -j ACCEPT",
	"iptables -P INPUT DROP; iptables -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT; " +
		"iptables -A INPUT -i lo -j ACCEPT",
	"iptables -A OUTPUT -p tcp --sport $P -d $N -j DROP",
	"iptables -A OUTPUT -o docker0 -p tcp --dport $D -j REJECT --reject-with tcp-reset",
	"iptables -I DOCKER-USER -i eth0 -p tcp -m conntrack --ctorigdstport $Q --ctdir ORIGINAL -j DROP",
	"iptables -I DOCKER-USER -s $N -j RETURN; iptables -A DOCKER-USER -i eth0 -j DROP",
	"iptables -I FORWARD -d $C -p tcp --dport $D -j DROP",
	"iptables -I FORWARD -m conntrack --ctstate DNAT -s $N -j REJECT",
	"iptables -P FORWARD ACCEPT; iptables -F DOCKER",
	"iptables -t raw -A PREROUTING -d $C -j DROP",
	"iptables -t raw -A PREROUTING -p tcp --dport $P -j NOTRACK",
	"iptables -t mangle -A PREROUTING -p tcp --dport $Q -j MARK --set-mark 7",
	"iptables -t mangle -A FORWARD -m mark --mark 7 -j DROP",
	"iptables -t mangle -A OUTPUT -p tcp --sport $P -j MARK --set-mark 8",
	"iptables -t nat -A PREROUTING -p tcp --dport 8090 -j DNAT --to-destination $C:$D",
	"iptables -t nat -A PREROUTING -p tcp --dport 8090 -j REDIRECT --to-ports $P",
	"iptables -t nat -A OUTPUT -p tcp -d 192.0.2.10 --dport 8090 -j DNAT --to-destination $C:$D",
	"iptables -t nat -I POSTROUTING -d $C -p tcp --dport $D -j MASQUERADE",
	"iptables -t nat -I POSTROUTING -s 172.17.0.0/16 -o eth0 -j SNAT --to-source 192.0.2.11",
	"iptables -t nat -D POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE",
	"ip6tables -A INPUT -p tcp --dport $P -j DROP",
	"ip6tables -P INPUT DROP; ip6tables -A INPUT -p ipv6-icmp -j ACCEPT",
	"ipset create bad hash:net; ipset add bad $N; iptables -I INPUT -m set --match-set bad src -j DROP",
	"ipset create open bitmap:port range 8000-9100; ipset add open $P; ipset add open $Q; " +
		"iptables -A INPUT -p tcp -i eth0 -m set ! --match-set open dst -j DROP",
	"nft add rule inet x in tcp dport { $P, 9009 } ip saddr { $N, 10.0.0.0/8 } drop",
	"nft add rule inet x in tcp dport vmap '{ $P : drop, 9009 : accept, 9010-9020 : jump deny }'",
	"nft add rule inet x in ip saddr . tcp dport '{ $N . $P, 198.18.0.1 . 1-9100 }' reject with tcp reset",
	"nft add set inet x nets '{ type ipv4_addr; flags interval; elements = { 172.16.0.0/12, $N } }'; " +
		"nft add rule inet x in ip saddr @nets tcp dport $P drop",
	"nft add map inet x to '{ type inet_service : ipv4_addr . inet_service; " +
		"elements = { 8091 : $C . $D, 8092 : 192.0.2.10 . $P } }'; " +
		"nft add rule inet x pre dnat ip to tcp dport map @to",
	"nft add rule inet x forward meta l4proto tcp ct original proto-dst $Q " +
		"ip saddr $N drop",
	"nft add rule inet x forward iifname eth0 tcp dport $D meta mark set 9 meta mark 9 counter drop",
	"nft add rule inet x in meta nfproto ipv6 tcp dport != $P drop",
	"nft add rule inet x in fib saddr . iif oif missing drop",
	"nft add rule inet x in tcp dport $P tcp option maxseg size 1-500 drop",
	"ip rule add pref 20 from 172.17.0.3 to 192.0.2.0/24 blackhole",
	"ip rule add pref 21 fwmark 7 lookup 77; ip route add unreachable default table 77",
	"ip rule add pref 22 fwmark 8 lookup 78; ip route add default via 198.51.100.20 table 78",
	"ip rule add pref 23 from 198.51.100.10 lookup 79; ip route add default via 198.51.100.20 table 79",
	"ip rule add pref 24 iif docker0 lookup 80; ip route add default via 198.51.100.20 table 80",
	"ip route add blackhole $C",
	"ip route add 203.0.113.0/24 via 198.51.100.20",
	"ip route replace default via 198.51.100.20",
	"ip route add 0.0.0.0/1 via 198.51.100.20; ip route add 128.0.0.0/1 via 198.51.100.20",
	"ip addr add 192.0.2.11/24 dev eth0",
	"ip addr add 10.9.9.9/32 dev lo",
	"sysctl -qw net.ipv4.ip_forward=0",
	"sysctl -qw net.ipv4.conf.all.rp_filter=$S",
	"sysctl -qw net.ipv4.conf.eth0.rp_filter=$S net.ipv4.conf.eth1.rp_filter=$S",
	"sysctl -qw net.ipv4.conf.docker0.rp_filter=$S",
	"sysctl -qw net.ipv4.conf.eth0.forwarding=0",
	"sysctl -qw net.ipv4.conf.docker0.route_localnet=1",
	"sysctl -qw net.ipv4.conf.all.arp_ignore=$S",
	"sysctl -qw net.ipv4.conf.docker0.proxy_arp=1",
	"sysctl -qw net.ipv4.tcp_syncookies=0",
	"sysctl -qw net.ipv6.conf.all.forwarding=0",
	"bridge link set dev vapp0 isolated on; bridge link set dev vweb0 isolated on",
	"bridge link set dev vweb0 hairpin on",
	"bridge link set dev vapp0 state 0",
	"ip link set docker0 mtu 1400",
	"ip link set vapp0 nomaster",
	"at web iptables -A INPUT -p tcp --dport $D -s 172.17.0.1 -j DROP",
	"at web iptables -A OUTPUT -d 192.0.2.0/24 -p tcp ! --sport 80 -j DROP",
	"at app ip route add 192.0.2.0/24 via 172.17.0.2",
	"at app ip route del default",
	"at app sysctl -qw net.ipv4.conf.all.rp_filter=1",
	"at web ip addr add 172.17.0.22/16 dev eth0",
}

// randomSituation returns a machine with containers of a Docker Engine, whose administrator has
// done a few odd things.
func randomSituation(t *testing.T, n int) *situation {
	r := rand.New(rand.NewPCG(uint64(n), 582))
	s := plainSituation(t, r)
	s.name = fmt.Sprint(n)
	s.setup += someOddities(r, someClients)
	return s
}

// someClients has addresses that clients may have.
var someClients = []string{"192.0.2.20", "203.0.113.1", "198.51.100.20", "172.17.0.3", "192.0.2.10"}

// someOddities returns a few oddities' commands. They may single out the clients.
func someOddities(r *rand.Rand, clients []string) string {
	var odd []int
	for len(odd) < 2+r.IntN(6) {
		if i := r.IntN(len(oddities)); !slices.Contains(odd, i) {
			odd = append(odd, i)
		}
	}
	slices.Sort(odd)
	var b strings.Builder
	for _, i := range odd { // others may have made one impossible: see TestEveryOddity
		fmt.Fprintf(&b, "(%s) || true\n", oddity(i, r, clients))
	}
	return b.String()
}

// oddity returns the commands with values for their variables.
func oddity(i int, r *rand.Rand, clients []string) string {
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	to := r.IntN(4)
	return strings.NewReplacer("$P", one("9000", "9001", "9002"),
		"$Q", one("8080", "8081", "8082"),
		"$C", []string{"172.17.0.2", "172.17.0.3", "172.18.0.2", "172.17.0.2"}[to],
		"$D", []string{"80", "81", "80", "83"}[to], "$S", one("0", "1", "2"),
		"$N", one(clients...)).
		Replace(oddities[i])
}

// plainSituation returns such a machine, to which nothing odd has been done.
func plainSituation(t *testing.T, r *rand.Rand) *situation {
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	s := &situation{}
	for _, c := range []string{"eth0 192.0.2.10/24,2001:db8::10/64 192.0.2.20/24,2001:db8::20/64,203.0.113.1/32",
		"eth1 198.51.100.10/24 198.51.100.20/24,203.0.113.1/32"} {
		card, err := parseCard(strings.Fields(c))
		if err != nil {
			t.Fatal(err)
		}
		s.cards = append(s.cards, card)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `docker0
br br1 172.18.0.1/16
cont far br1 172.18.0.2/16 172.18.0.1
%s engine docker0 br1
server machine s9000 tcp/%s
server machine s9001 tcp/[::]:9001
server machine s9002 tcp/%s
server machine s9003 udp/0.0.0.0:9003
server web web tcp/[::]:80 tcp/0.0.0.0:83
server app app tcp/[::]:81 udp/0.0.0.0:82
server far far tcp/0.0.0.0:80
%[1]s publish docker0 %[4]s 8080 172.17.0.2 80
%[1]s publish docker0 0.0.0.0 8081 172.17.0.3 81
%[1]s publish br1 0.0.0.0 8082 172.18.0.2 80
nft -f - <<'R'
table inet x {
	chain deny { tcp dport 9012 accept; drop; }
	chain in { type filter hook input priority 5; }
	chain forward { type filter hook forward priority 5; }
	chain pre { type nat hook prerouting priority -101; }
}
R
`, one("", "", "NOPROXY=1"), one("0.0.0.0:9000", "192.0.2.10:9000", "127.0.0.1:9000"),
		one("0.0.0.0:9002", "172.17.0.1:9002", "198.51.100.10:9002"),
		one("0.0.0.0", "0.0.0.0", "192.0.2.10", "127.0.0.1"))
	s.setup = b.String()
	for _, line := range []string{
		"machine 127.0.0.1:9000 127.0.0.1:9002 127.0.0.1:8080 [::1]:9001 172.17.0.2:83",
		"machine,eth0,eth0@203.0.113.1,app,web,far 192.0.2.10:9000 192.0.2.10:9001 192.0.2.10:9002 " +
			"192.0.2.10:8080 192.0.2.10:8081 192.0.2.10:8082 192.0.2.10:8090 192.0.2.10:8091 " +
			"192.0.2.10:8092 udp/192.0.2.10:9003",
		"machine,eth1,eth1@203.0.113.1,app 198.51.100.10:9000 198.51.100.10:9001 198.51.100.10:9002 " +
			"198.51.100.10:8080 198.51.100.10:8082",
		"machine,app,far 172.17.0.1:9001 172.17.0.1:9002 172.17.0.2:80 172.17.0.2:83 172.18.0.2:80",
		"machine,web 172.17.0.3:81 udp/172.17.0.3:82",
		"machine,eth0 [2001:db8::10]:9001 [2001:db8::10]:8080 [2001:db8::10]:8082",
	} {
		dials, err := parseDials(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		s.dials = append(s.dials, dials...)
	}
	return s
}

// Each oddity alone must be possible. A program that the machine lacks, or a module of the kernel,
// is named; -oddities -run TestEveryOddity/NUMBER tries one.
func TestEveryOddity(t *testing.T) {
	if !*eachOddity {
		t.Skip("make test-machines runs it: it proves only that this file's commands are possible")
	}
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	r := rand.New(rand.NewPCG(0, 582))
	plain := plainSituation(t, r)
	slots := make(chan struct{}, 4)
	for i := range oddities {
		commands := oddity(i, r, someClients)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			out, err := start(t, plain).try("(" + commands + ")")
			if err == nil {
				return
			}
			for _, lack := range []string{"not found", "Unknown device type", "missing kernel module",
				"does not exist or is not supported", "not supported"} {
				if strings.Contains(out, lack) {
					t.Skipf("this machine cannot do it: %s: %s", commands, out)
				}
			}
			t.Errorf("%s: %v: %s", commands, err, out)
		})
	}
}

// TestRandomMachines compares the answers in copies of random machines with what clients get.
func TestRandomMachines(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	for n := range *randomMachines {
		s := randomSituation(t, *firstRandom+n)
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			m := start(t, s)
			s.answers = m.dump(s).dial(t, s)
			same(t, "a client", unanswered(m.dial(s)), unanswered(s.answers))
			if t.Failed() {
				t.Log(s.setup)
			}
		})
	}
}

// TestRandomTries compares what toll ports --try says about odd commands with what clients get after
// the commands.
func TestRandomTries(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	for n := range *randomMachines {
		r := rand.New(rand.NewPCG(uint64(*firstRandom+n), 583))
		s := plainSituation(t, r)
		s.lenient = true
		t.Run(fmt.Sprint(*firstRandom+n), func(t *testing.T) {
			t.Parallel()
			m := start(t, s)
			// Of the other machines at a card, a report says what any of them gets.
			s.try = someOddities(r, []string{"192.0.2.0/24", "203.0.113.1", "198.51.100.0/24"})
			for name, pid := range m.places() {
				s.try = strings.ReplaceAll(s.try, "at "+name+" ", "nsenter -t "+pid+" -n ")
			}
			report, _ := m.tried(s)
			m.sh(s.try)
			for i, got := range unanswered(m.dial(s)) {
				if _, got, _ = strings.Cut(got, ": "); comparable(report, s.dials[i]) {
					s.compareReport(t, "the try", report, s.dials[i], got)
				}
			}
			if t.Failed() {
				t.Log(s.setup, s.try)
			}
		})
	}
}

// comparable reports whether a client of the report stands for the dial's: not for a server's
// container itself, nor for a machine behind a router to which no route leads.
func comparable(r *ports.Report, d dial) bool {
	routed := d.source != anybody
	for _, row := range r.Ports {
		for _, p := range row.Dials {
			if p.Dial == d.to.String() && row.Server.Name == ports.NameOf(d.from) {
				return false
			}
			routed = routed || isFrom(r, p, d, true)
		}
	}
	return routed && !slices.ContainsFunc(r.Inside, func(in ports.Inside) bool {
		return in.Server.Name == ports.NameOf(d.from) && slices.ContainsFunc(in.Dials,
			func(p ports.Path) bool { return p.Dial == d.to.String() })
	})
}

// unanswered replaces "unreachable", which clients get late or not at all where no machine has the
// address.
func unanswered(all []string) (out []string) {
	for _, a := range all {
		out = append(out, strings.ReplaceAll(a, ": unreachable", ": timeout"))
	}
	return out
}
