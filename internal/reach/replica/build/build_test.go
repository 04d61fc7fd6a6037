package build

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestPlaces(t *testing.T) {
	s := newSite(t)
	s.in(s.spaces[0], "iptables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT "+
		"--to-destination 172.17.0.2:80")
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"), socket(1, "0.0.0.0:80"))
	for _, tt := range []struct {
		name   string
		client replica.Client
		to     string
		got    replica.Got
		socket int
		seen   string // "": any
	}{
		{"itself", replica.Client{}, "127.0.0.1:9000", replica.Connected, 0, "127.0.0.1"},
		{"its address", replica.Client{}, "192.0.2.10:9000", replica.Connected, 0, "192.0.2.10"},
		{"nothing there", replica.Client{}, "192.0.2.10:9001", replica.Refused, -1, ""},
		{"container", replica.Client{Space: 2}, "172.17.0.1:9000", replica.Connected, 0, "172.17.0.3"},
		{"to a container", replica.Client{Space: 2}, "172.17.0.2:80", replica.Connected, 1, "172.17.0.3"},
		{"neighbour", replica.Client{Card: "eth0"}, "192.0.2.10:9000", replica.Connected, 0, ""},
		{"DNAT", replica.Client{Card: "eth0"}, "192.0.2.10:8080", replica.Connected, 1, ""},
		{"the gateway", replica.Client{Card: "eth0", Source: netip.MustParseAddr("192.0.2.20")},
			"192.0.2.10:8080", replica.Connected, 1, "192.0.2.20"},
		{"far", replica.Client{Card: "eth0", Source: netip.MustParseAddr("203.0.113.9")},
			"192.0.2.10:8080", replica.Connected, 1, "203.0.113.9"},
		{"new container", replica.Client{Bridge: "docker0"}, "192.0.2.10:8080", replica.Connected, 1, ""},
		{"new container with an address", replica.Client{Bridge: "docker0",
			Source: netip.MustParseAddr("172.17.3.4")}, "192.0.2.10:9000", replica.Connected, 0,
			"172.17.3.4"},
		{"the container from outside", replica.Client{Card: "eth0"}, "172.17.0.2:80",
			replica.Connected, 1, ""},
		{"no such device", replica.Client{Card: "eth7"}, "192.0.2.10:80", replica.Failed, -1, ""},
	} {
		a := s.dial(r, tt.client, tt.to)
		if len(a.Outcomes) != 1 || a.Outcomes[0].Got != tt.got || a.Outcomes[0].Socket != tt.socket ||
			tt.seen != "" && a.Outcomes[0].Seen.String() != tt.seen {
			t.Errorf("%s to %s: %+v", tt.name, tt.to, a)
		}
	}
}

// Link-local addresses come some time after the devices.
const noLinkLocal = "net.ipv6.conf.default.addr_gen_mode=1"

// The copy's namespaces have what the originals have, with the same indexes.
func TestSame(t *testing.T) {
	s := newSite(t, noLinkLocal)
	s.ip(0, "link add br7 type bridge", "link set br7 mtu 1400", "addr add 10.7.0.1/24 dev br7",
		"route add default via 192.0.2.20 table 100", "rule add pref 3 from 192.0.2.10 lookup 100",
		"route add 198.51.100.0/24 via 172.17.0.3 metric 7", "route add blackhole 198.18.0.0/15",
		"link set veth3 type bridge_slave hairpin on isolated on")
	s.set(0, "net.ipv4.conf.docker0.rp_filter=1", "net.ipv4.conf.all.route_localnet=1")
	m := s.machine()
	got, err := makeCopy(replica.Order{Machine: m})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	for _, l := range got.Lacks() {
		t.Errorf("it lacks %+v", l)
	}
	for i, ns := range got.(*machine).spaces {
		want, have := s.state(s.spaces[i]), s.state(ns)
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("namespace %d:\n%s", i, diff)
		}
	}
}

// The machine sends no packet and keeps its settings while its copy is used.
func TestUnchanged(t *testing.T) {
	s := newSite(t, noLinkLocal)
	s.in(s.spaces[0], "iptables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT "+
		"--to-destination 172.17.0.2:80")
	state := func() (out []string) {
		for _, ns := range append(slices.Clip(s.spaces), s.other) {
			out = append(out, s.state(ns)...)
			out = append(out, s.in(ns, "grep ^Tcp: /proc/thread-self/net/snmp"),
				s.in(ns, "ip -4 neigh show"), s.in(ns, "nft list ruleset"))
		}
		return out
	}
	before := state()
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"), socket(1, "0.0.0.0:80"))
	s.expect(r, replica.Client{}, "192.0.2.10:9000", 0)
	s.expect(r, replica.Client{}, "192.0.2.99:9000", -1)
	s.expect(r, replica.Client{Card: "eth0"}, "192.0.2.10:8080", 1)
	s.expect(r, replica.Client{Bridge: "docker0"}, "192.0.2.10:8080", 1)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Error(diff)
	}
}

func (s *site) state(ns *netns.NS) []string {
	var out []string
	err := ns.Do(func() error {
		links, err := link.ReadLinks()
		if err != nil {
			return err
		}
		var names []string
		for _, l := range links {
			names = append(names, l.Name)
			out = append(out, fmt.Sprintln(l.Name, l.Index, l.MAC, l.MTU, l.Up, l.Lower, l.Master))
		}
		for key, value := range sysctl.ReadAll(names) {
			out = append(out, key+" = "+value)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, command := range []string{"ip -4 -o addr", "ip -6 -o addr", "ip route show table all",
		"ip -6 route show table all", "ip rule", "bridge -d link"} {
		for line := range strings.Lines(s.in(ns, command)) {
			if strings.HasPrefix(line, "multicast ff00::/8") { // the kernel adds it with the carrier
				continue
			}
			words := slices.DeleteFunc(strings.Fields(line), func(w string) bool {
				return w == "noprefixroute" || w == "nodad" // the copy has all routes anyway
			})
			out = append(out, command+": "+strings.Join(words, " "))
		}
	}
	slices.Sort(out)
	return out
}

// A rule that cannot be copied is named where the answer depends on it, and only there.
func TestUnsure(t *testing.T) {
	s := newSite(t)
	s.in(s.spaces[0], "iptables -A INPUT -p tcp --dport 9000 -m recent --name a --update -j DROP")
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"), socket(0, "0.0.0.0:9001"))
	a := s.dial(r, replica.Client{}, "127.0.0.1:9000")
	if len(a.Outcomes) != 2 || a.Outcomes[0].Got != replica.Connected ||
		a.Outcomes[1].Got != replica.Timeout || len(a.Unsure) != 1 ||
		a.Unsure[0] != "rule 1 of chain INPUT in table ip filter (recent cannot be copied)" {
		t.Errorf("%+v", a)
	}
	a = s.dial(r, replica.Client{}, "127.0.0.1:9001")
	if len(a.Outcomes) != 1 || a.Outcomes[0].Got != replica.Connected || a.Unsure != nil {
		t.Errorf("%+v", a)
	}
}

// fromCard scans the machine of a site from another one.
var fromCard = replica.Scan{Client: replica.Client{Card: "eth0"},
	To: netip.MustParseAddr("192.0.2.10")}

func TestScan(t *testing.T) {
	s := newSite(t)
	s.in(s.spaces[0], "iptables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT "+
		"--to-destination 172.17.0.2:80")
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"), socket(1, "0.0.0.0:80"))
	ports, err := r.Scan(t.Context(), fromCard)
	if err != nil || !slices.Equal(ports[0], []uint16{8080, 9000}) {
		t.Errorf("%v, %v", ports, err)
	}
}

func TestRandom(t *testing.T) {
	s := newSite(t)
	for _, to := range []string{"-m statistic --mode random --probability 0.5 -j DNAT " +
		"--to-destination 172.17.0.2:80",
		"-j DNAT --to-destination 172.17.0.3:80"} {
		s.in(s.spaces[0], "iptables -t nat -A PREROUTING -p tcp --dport 8080 "+to)
	}
	r := s.start(s.machine(), socket(1, "0.0.0.0:80"), socket(2, "0.0.0.0:80"))
	found := map[int]bool{}
	testwait.Until(t, time.Minute, "both servers answered", func() bool {
		for _, o := range s.dial(r, replica.Client{Card: "eth0"}, "192.0.2.10:8080").Outcomes {
			found[o.Socket] = true
		}
		return found[0] && found[1] && len(found) == 2
	})
}

func TestExplain(t *testing.T) {
	s := newSite(t)
	s.in(s.spaces[0], "iptables -A FORWARD -p tcp --dport 81 -j DROP")
	r := s.start(s.machine(), socket(1, "0.0.0.0:80"), socket(1, "0.0.0.0:81"))
	dial := func(to string) replica.Answer {
		got, err := r.Dial(t.Context(), []replica.Dial{{Client: replica.Client{Card: "eth0"},
			Proto: "tcp", To: netip.MustParseAddrPort(to), Explain: true}})
		if err != nil {
			t.Fatal(err)
		}
		return got[0]
	}
	a := dial("172.17.0.2:80")
	if len(a.Outcomes) != 1 || a.Outcomes[0].Socket != 0 || len(a.Steps) < 6 || a.Lost != nil {
		t.Errorf("%+v", a)
	}
	a = dial("172.17.0.2:81")
	if len(a.Outcomes) != 1 || a.Outcomes[0].Got != replica.Timeout || a.Lost == nil ||
		a.Lost.Rule == nil || a.Lost.Rule.Chain != "FORWARD" || a.Lost.Rule.Number != 1 {
		t.Errorf("%+v", a)
	}
}

// Machines at a bridge without an address have those that the dials give them.
func TestBridgeWithoutAddress(t *testing.T) {
	s := newSite(t)
	tid, err := s.other.TID()
	if err != nil {
		t.Fatal(err)
	}
	s.ip(0, "link add br9 type bridge", "link set br9 up",
		fmt.Sprint("link add tap9 type veth peer name tap9 netns ", tid),
		"link set tap9 master br9 up")
	s.in(s.other, "ip link set tap9 up")
	r := s.start(s.machine())
	one, other := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2")
	answers, err := r.Dial(t.Context(), []replica.Dial{
		{Client: replica.Client{Card: "br9", Source: other}, Proto: "tcp",
			To: netip.AddrPortFrom(one, 80)},
		{Client: replica.Client{Bridge: "br9", Source: one}, Proto: "tcp",
			To: netip.AddrPortFrom(other, 80)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		if len(a.Outcomes) != 1 || a.Outcomes[0].Got != replica.Refused {
			t.Errorf("%+v", a)
		}
	}
}
