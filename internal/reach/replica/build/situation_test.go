package build

import (
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// expect dials and compares the outcome; socket -1 is any lack of an answer. Another lack of an answer
// may be a busy machine's, on which it dials again.
func (s *site) expect(r *replica.Session, c replica.Client, to string, socket int) {
	s.t.Helper()
	var a replica.Answer
	testwait.Met(time.Minute, func() bool {
		a = s.dial(r, c, to)
		return socket < 0 || len(a.Outcomes) != 1 || !a.Outcomes[0].Doubtful()
	})
	if len(a.Outcomes) != 1 || a.Outcomes[0].Socket != socket || a.Outcomes[0].Got == replica.Failed {
		s.t.Errorf("%+v to %s: %+v", c, to, a)
	}
}

func from(card, source string) replica.Client {
	return replica.Client{Card: card, Source: netip.MustParseAddr(source)}
}

func TestReversePath(t *testing.T) {
	for _, filter := range []string{"0", "1"} {
		s := newSite(t)
		s.ip(0, "link add br1 type bridge", "addr add 172.18.0.1/16 dev br1", "link set br1 up",
			"link add vethb type veth peer name eth1 netns "+s.tid(1), "link set vethb master br1 up")
		s.ip(1, "link set eth1 up", "addr add 172.18.0.2/16 dev eth1",
			"route replace default via 172.18.0.1")
		s.in(s.spaces[0], "iptables -t nat -A PREROUTING -i eth0 -p tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80")
		for _, d := range []string{"all", "docker0", "br1"} {
			s.set(0, "net.ipv4.conf."+d+".rp_filter="+filter)
		}
		r := s.start(s.machine(), socket(1, "0.0.0.0:80"))
		want := map[string]int{"0": 0, "1": -1}[filter]
		s.expect(r, replica.Client{Card: "eth0"}, "192.0.2.10:8080", want)
	}
}

func TestIPv6(t *testing.T) {
	s := newSite(t)
	s.ip(0, "addr add 2001:db8:1::10/64 dev eth0 nodad", "route add default via fe80::1 dev eth0",
		"addr add fd00:17::1/64 dev docker0 nodad")
	s.ip(1, "addr add fd00:17::2/64 dev eth0 nodad", "route add default via fd00:17::1")
	s.set(0, "net.ipv6.conf.all.forwarding=1")
	s.in(s.spaces[0], "ip6tables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to-destination [fd00:17::2]:80")
	r := s.start(s.machine(), socket(0, "[::]:9000"), socket(1, "[::]:80"))
	s.expect(r, replica.Client{}, "[::1]:9000", 0)
	s.expect(r, replica.Client{}, "127.0.0.1:9000", 0)
	s.expect(r, replica.Client{Card: "eth0"}, "[2001:db8:1::10]:9000", 0)
	s.expect(r, replica.Client{Card: "eth0"}, "[2001:db8:1::10]:8080", 1)
	s.expect(r, from("eth0", "2001:db8:1::77"), "[2001:db8:1::10]:8080", 1)
	s.expect(r, from("eth0", "2001:db8:ffff::9"), "[2001:db8:1::10]:8080", 1)
	s.expect(r, replica.Client{Bridge: "docker0"}, "[2001:db8:1::10]:8080", 1)
	s.expect(r, replica.Client{Space: 1}, "[2001:db8:1::10]:9000", 0)
}

// A macvlan is not reached from its parent's machine.
func TestMacvlan(t *testing.T) {
	s := newSite(t)
	i := s.add()
	s.ip(0, "link add mv0 link eth0 netns "+s.tid(i)+" type macvlan mode bridge")
	s.ip(i, "link set mv0 name eth0", "link set eth0 up", "addr add 192.0.2.149/24 dev eth0",
		"route add default via 192.0.2.20")
	r := s.start(s.machine(), socket(i, "0.0.0.0:8030"), socket(0, "0.0.0.0:9000"))
	s.expect(r, replica.Client{}, "192.0.2.149:8030", -1)
	s.expect(r, replica.Client{Space: i}, "192.0.2.10:9000", -1)
	s.expect(r, replica.Client{Card: "eth0"}, "192.0.2.149:8030", 0)
	s.expect(r, from("eth0", "203.0.113.9"), "192.0.2.149:8030", 0)
	s.expect(r, replica.Client{Space: i, Card: "eth0"}, "192.0.2.10:9000", 1)
}

// A kernel without ipvlan makes the nearest thing, and answers are unsure.
func TestIPvlan(t *testing.T) {
	s := newSite(t)
	i := s.add()
	s.ip(0, "link add mv0 link eth0 netns "+s.tid(i)+" type macvlan mode bridge")
	s.ip(i, "link set mv0 name eth0", "link set eth0 up", "addr add 192.0.2.149/24 dev eth0")
	m := s.machine()
	for j := range m.Spaces[i].Links {
		if l := &m.Spaces[i].Links[j]; l.Kind == "macvlan" {
			l.Kind, l.MAC, l.Data = "ipvlan", m.Spaces[0].Links[1].MAC, nil
		}
	}
	r, err := replica.Start(t.Context(), m, []replica.Socket{socket(i, "0.0.0.0:8030")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a := s.dial(r, replica.Client{Card: "eth0"}, "192.0.2.149:8030")
	if len(a.Outcomes) != 1 || a.Outcomes[0].Socket != 0 || len(a.Unsure) != len(r.Lacks()) {
		t.Errorf("%+v, %+v", a, r.Lacks())
	}
}

// withoutVLANs reports whether the kernel cannot make VLANs.
func (s *site) withoutVLANs() bool {
	return s.spaces[1].Do(func() error {
		return exec.Command("ip", "link", "add", "v", "link", "eth0", "type", "vlan", "id", "9").Run()
	}) != nil
}

// Other machines are in the VLAN of a card. A kernel without VLANs makes it as a card.
func TestVLAN(t *testing.T) {
	s := newSite(t)
	s.ip(0, "link add vl0 link eth0 type macvlan mode bridge", "addr add 10.30.0.1/24 dev vl0",
		"link set vl0 up", "route add 203.0.113.0/24 via 10.30.0.254",
		"neigh add 10.30.0.254 lladdr 02:00:00:00:00:99 dev vl0 nud permanent")
	without := s.withoutVLANs()
	for _, c := range []struct {
		rules string
		doubt bool // without VLANs
	}{
		{"add chain netdev x in { type filter hook ingress device docker0 priority 0; }", false},
		{"add chain netdev x in { type filter hook ingress device eth0 priority 0; }", true},
	} {
		s.in(s.spaces[0], "nft add table netdev x ; delete table netdev x ; add table netdev x ; "+
			c.rules)
		m := s.machine()
		for i := range m.Spaces[0].Links {
			if l := &m.Spaces[0].Links[i]; l.Name == "vl0" {
				l.Kind, l.Data = "vlan", []byte{6, 0, 1, 0, 30, 0, 0, 0} // IFLA_VLAN_ID
			}
		}
		r, err := replica.Start(t.Context(), m, []replica.Socket{socket(0, "0.0.0.0:9000")})
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []replica.Client{{Card: "vl0"}, from("vl0", "10.30.0.77"),
			from("vl0", "203.0.113.9")} {
			a := s.dial(r, from, "10.30.0.1:9000")
			if len(a.Outcomes) != 1 || a.Outcomes[0].Socket != 0 || len(a.Unsure) != len(r.Lacks()) ||
				(len(a.Unsure) > 0) != (c.doubt && without) {
				t.Errorf("%s: %+v, %+v", c.rules, a, r.Lacks())
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A bridge's rules and list of VLANs do not see what is made as a card in place of its VLAN.
func TestBridgesVLAN(t *testing.T) {
	s := newSite(t)
	s.ip(0, "link add br0 type bridge", "link set eth0 master br0", "link set br0 up",
		"link add v30 link br0 type macvlan mode bridge", "addr add 10.30.0.1/24 dev v30",
		"link set v30 up")
	without := s.withoutVLANs()
	m := s.machine()
	for i := range m.Spaces[0].Links {
		if l := &m.Spaces[0].Links[i]; l.Name == "v30" {
			l.Kind, l.Data = "vlan", []byte{6, 0, 1, 0, 30, 0, 0, 0} // IFLA_VLAN_ID
		}
	}
	r, err := replica.Start(t.Context(), m, []replica.Socket{socket(0, "0.0.0.0:9000")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a := s.dial(r, replica.Client{Card: "v30"}, "10.30.0.1:9000")
	if len(a.Outcomes) != 1 || a.Outcomes[0].Socket != 0 || (len(a.Unsure) > 0) != without {
		t.Errorf("%+v, %+v", a, r.Lacks())
	}
}

// A copy has neither bonds nor VLANs of VLANs, so its packets miss the rules at what is below them.
func TestRulesBelow(t *testing.T) {
	s := newSite(t)
	s.ip(0, "link add p0 type veth peer name p1")
	s.in(s.spaces[0], "nft add table netdev x ; "+
		"add chain netdev x in { type filter hook ingress device p0 priority 0; }")
	m := s.machine()
	links := m.Spaces[0].Links
	at := func(name string) int {
		return slices.IndexFunc(links, func(l link.Saved) bool { return l.Name == name })
	}
	eth0, p0 := &links[at("eth0")], &links[at("p0")]
	p0.Parent = 0
	for _, c := range []struct {
		make func()
		want string
	}{
		{func() { eth0.Kind, p0.Kind, p0.Master = "bond", "", eth0.Index }, "rules at p0, a port of eth0"},
		{func() {
			eth0.Kind, eth0.Parent, eth0.ParentSpace = "vlan", p0.Index, link.Here
			p0.Kind, p0.Master = "vlan", 0
		}, "rules at p0, below eth0"},
	} {
		c.make()
		r := s.start(m, socket(0, "0.0.0.0:9000"))
		for from, want := range map[replica.Client][]string{{Card: "eth0"}: {c.want},
			{Bridge: "docker0"}: nil} {
			a := s.dial(r, from, "192.0.2.10:9000")
			if len(a.Outcomes) != 1 || a.Outcomes[0].Socket != 0 || !slices.Equal(a.Unsure, want) {
				t.Errorf("%+v: %+v", from, a)
			}
		}
	}
}

// Rules of either kind may lead to a service's address, where a copy has nobody.
func TestRedirectedToService(t *testing.T) {
	for _, iptables := range []string{"iptables", "iptables-legacy"} {
		s := newSite(t)
		s.ip(0, "addr add 10.96.0.1/32 dev lo")
		for port, to := range map[string]string{"8080": "10.96.0.1:80", "8081": "172.17.0.2:80"} {
			s.in(s.spaces[0], iptables+" -t nat -A PREROUTING -p tcp --dport "+port+
				" -j DNAT --to-destination "+to)
		}
		m := s.machine()
		m.Spaces[0].Unknown = []replica.Unknown{
			{What: "a service", At: netip.MustParseAddrPort("10.96.0.1:80")},
			{What: "another", At: netip.MustParseAddrPort("10.96.0.2:80")}}
		r := s.start(m, socket(0, "0.0.0.0:9000"), socket(1, "0.0.0.0:80"))
		for to, want := range map[string][]string{"192.0.2.10:8080": {"a service"},
			"10.96.0.1:80": {"a service"}, "192.0.2.10:8081": nil, "192.0.2.10:9000": nil,
			"192.0.2.10:7": nil} {
			got, err := r.Dial(t.Context(), []replica.Dial{{Client: replica.Client{Card: "eth0"},
				Proto: "tcp", To: netip.MustParseAddrPort(to), Explain: true}})
			if err != nil {
				t.Fatal(err)
			}
			connects := strings.HasSuffix(to, "8081") || strings.HasSuffix(to, "9000")
			if a := got[0]; len(a.Outcomes) != 1 || !slices.Equal(a.Unsure, want) ||
				(a.Outcomes[0].Got == replica.Connected) != connects {
				t.Errorf("%s, %s: %+v, want the doubts %q", iptables, to, a, want)
			}
		}
	}
}

// What is unknown of a card concerns the VLAN on it that a container has.
func TestContainerVLAN(t *testing.T) {
	s := newSite(t)
	i := s.add()
	s.ip(0, "link add mv0 link eth0 netns "+s.tid(i)+" type macvlan mode bridge")
	s.ip(i, "link set mv0 name v30", "link set v30 up", "addr add 10.30.0.1/24 dev v30")
	m := s.machine()
	for j := range m.Spaces[i].Links {
		if l := &m.Spaces[i].Links[j]; l.Name == "v30" {
			l.Kind, l.Data = "vlan", []byte{6, 0, 1, 0, 30, 0, 0, 0} // IFLA_VLAN_ID
		}
	}
	m.Spaces[0].Unknown = []replica.Unknown{{What: "a program", Device: "eth0"},
		{What: "another", Device: "docker0"}}
	r := s.start(m, socket(i, "0.0.0.0:80"))
	for _, explain := range []bool{false, true} {
		got, err := r.Dial(t.Context(), []replica.Dial{{Client: replica.Client{Space: i, Card: "v30"},
			Proto: "tcp", To: netip.MustParseAddrPort("10.30.0.1:80"), Explain: explain}})
		if err != nil {
			t.Fatal(err)
		}
		a := got[0]
		if len(a.Outcomes) != 1 || a.Outcomes[0].Socket != 0 ||
			!slices.Equal(a.Unsure, []string{"a program"}) {
			t.Errorf("explained: %t: %+v", explain, a)
		}
	}
}

// Two cards on one cable: replies may leave by the other one.
func TestTwoCards(t *testing.T) {
	s := newSite(t)
	s.ip(0, "link add eth1 type veth peer name eth1 netns "+s.tid(s.add()), "link set eth1 up",
		"addr add 192.0.2.11/24 dev eth1", "link add eth2 type veth peer name eth2 netns "+s.tid(s.add()),
		"link set eth2 up", "addr add 198.51.100.10/24 dev eth2")
	s.ip(3, "link set eth1 up")
	s.ip(4, "link set eth2 up")
	s.spaces, s.tids = s.spaces[:3], s.tids[:3] // beyond the copy
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"))
	s.expect(r, replica.Client{Card: "eth1"}, "192.0.2.11:9000", 0)
	s.expect(r, replica.Client{Card: "eth1"}, "192.0.2.10:9000", 0)
	s.expect(r, replica.Client{Card: "eth0"}, "192.0.2.11:9000", 0)
	s.expect(r, replica.Client{Card: "eth2"}, "198.51.100.10:9000", 0)
	s.expect(r, replica.Client{Card: "eth2"}, "192.0.2.10:9000", 0)
}

// Where ports decide between next hops, connections of one client may take different ways.
func TestSeveralNextHops(t *testing.T) {
	s := newSite(t)
	routes := []string{"route replace default via 192.0.2.20",
		"route replace default nexthop via 192.0.2.20 dev eth0 nexthop via 172.17.0.2 dev docker0"}
	for i, route := range routes {
		s.ip(0, route)
		for _, policy := range []int{0, 1} {
			s.set(0, fmt.Sprint("net.ipv4.fib_multipath_hash_policy=", policy))
			if got, want := random(s.machine().Spaces[0]), i == 1 && policy == 1; got != want {
				t.Errorf("%s, policy %d: random: %t", route, policy, got)
			}
		}
	}
}

// The other end is the only neighbour, as in a cloud or of a tunnel.
func TestPointToPoint(t *testing.T) {
	s := newSite(t)
	s.ip(0, "link add wg0 type veth peer name wg0 netns "+s.tid(s.add()), "link set wg0 arp off up",
		"addr add 10.8.0.1/32 peer 10.8.0.2 dev wg0", "route add 10.9.0.0/24 dev wg0",
		"link add eth3 type veth peer name eth3 netns "+s.tid(s.add()), "link set eth3 up",
		"addr add 203.0.113.1/32 dev eth3", "route add 198.51.100.1 dev eth3",
		"route add 198.51.100.0/24 via 198.51.100.1 dev eth3")
	s.ip(3, "link set wg0 up")
	s.ip(4, "link set eth3 up")
	s.spaces, s.tids = s.spaces[:3], s.tids[:3]
	m := s.machine()
	for i := range m.Spaces[0].Links {
		if l := &m.Spaces[0].Links[i]; l.Name == "wg0" {
			l.Kind, l.MAC, l.Parent = "wireguard", nil, 0
		}
	}
	r := s.start(m, socket(0, "0.0.0.0:9000"))
	s.expect(r, replica.Client{Card: "wg0"}, "10.8.0.1:9000", 0)
	s.expect(r, from("wg0", "10.9.0.7"), "10.8.0.1:9000", 0)
	s.expect(r, replica.Client{Card: "eth3"}, "203.0.113.1:9000", 0)
	s.expect(r, from("eth3", "198.51.100.7"), "203.0.113.1:9000", 0)
}

// The card is a port of the bridge that has the address.
func TestBridgedCard(t *testing.T) {
	s := newSite(t)
	s.ip(0, "link add br0 type bridge", "addr flush dev eth0", "link set eth0 master br0",
		"link set br0 up", "addr add 192.0.2.10/24 dev br0", "route replace default via 192.0.2.20")
	i := s.add()
	s.ip(0, "link add vnet1 type veth peer name eth0 netns "+s.tid(i), "link set vnet1 master br0 up")
	s.ip(i, "link set eth0 up", "addr add 192.0.2.30/24 dev eth0")
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"), socket(i, "0.0.0.0:80"))
	for _, card := range []string{"eth0", "br0"} {
		s.expect(r, replica.Client{Card: card}, "192.0.2.10:9000", 0)
		s.expect(r, replica.Client{Card: card}, "192.0.2.30:80", 1)
	}
	s.expect(r, from("br0", "203.0.113.9"), "192.0.2.10:9000", 0)
	s.expect(r, replica.Client{Bridge: "br0"}, "192.0.2.30:80", 1)
}

// A device without a carrier, or down, leads nowhere.
func TestNoCarrier(t *testing.T) {
	s := newSite(t)
	s.ip(0, "link add eth1 type veth peer name eth1 netns "+s.tid(s.add()), "link set eth1 up",
		"addr add 198.51.100.10/24 dev eth1", "link add eth2 type veth peer name eth2 netns "+s.tid(3),
		"addr add 203.0.113.10/24 dev eth2")
	s.spaces, s.tids = s.spaces[:3], s.tids[:3]
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"))
	s.expect(r, replica.Client{Card: "eth1"}, "198.51.100.10:9000", -1)
	s.expect(r, replica.Client{Card: "eth2"}, "203.0.113.10:9000", -1)
	s.expect(r, replica.Client{}, "203.0.113.10:9000", 0)
}

// What a device without a carrier in the copy does to packets is not known.
func TestLateCarrier(t *testing.T) {
	s := newSite(t)
	s.ip(0, "link add br9 type bridge", "link set br9 up", "link add v9 type veth peer name w9",
		"addr add 10.9.0.1/24 dev v9", "link set v9 up")
	m := s.machine()
	for i := range m.Spaces[0].Links {
		if l := &m.Spaces[0].Links[i]; l.Name == "br9" || l.Name == "v9" {
			l.Lower = true // of a bridge without ports that had one
		}
	}
	r, err := replica.Start(t.Context(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := replica.Lacks{What: "device v9", Why: errNoCarrier.Error(), Device: "v9"}
	if got := r.Lacks(); !slices.Equal(got, []replica.Lacks{want}) {
		t.Errorf("%+v", got)
	}
}

func TestCertain(t *testing.T) {
	rule := &replica.Rule{}
	for _, x := range []struct {
		got  replica.Got
		lost *replica.Lost
		want bool
	}{
		{replica.Timeout, nil, false},
		{replica.Timeout, &replica.Lost{Why: replica.Untraced}, false},
		{replica.Timeout, &replica.Lost{Why: replica.NotForwarded}, true},
		{replica.Unreachable, &replica.Lost{Why: replica.NoNeighbour}, false},
		{replica.Unreachable, &replica.Lost{Rule: rule}, true},
	} {
		a := replica.Answer{Outcomes: []replica.Outcome{{Got: x.got}}, Lost: x.lost}
		if certain(a) != x.want {
			t.Errorf("%s, %+v: %t", x.got, x.lost, !x.want)
		}
	}
}
