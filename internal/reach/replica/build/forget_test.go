package build

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// changes are commands on a random machine. $P is a port, $Q a port of a container, $C a
// container's address. Those of odd are further ones.
var changes = []string{
	"ip link set veth2 nomaster",
	"ip link add br1 type bridge; ip link set br1 up; ip link set veth2 master br1",
	"ip link set veth2 down; ip link set veth2 up",
	"ip addr add 192.0.2.11/24 dev eth0; ip addr del 192.0.2.10/24 dev eth0",
	"ip neigh add 172.17.0.2 lladdr 02:00:00:00:00:99 dev docker0",
	"ip route add blackhole 172.17.0.3",
	"ip rule add from 172.17.0.0/16 to 192.0.2.0/24 blackhole",
	"sysctl -w net.ipv4.ip_forward=0",
	"sysctl -w net.ipv4.conf.docker0.rp_filter=1 net.ipv4.conf.all.rp_filter=1",
	"iptables -I INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT; iptables -P INPUT DROP",
	"iptables -t nat -F",
	"for v in /sys/class/net/docker0/brif/*; do bridge link set dev ${v##*/} isolated on; done",
	"ip link set docker0 down",
	"ip link del docker0; ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; " +
		"ip link set docker0 up; ip link set veth2 master docker0",
}

// unheard are changes that are hard to notice.
var unheard = []string{
	"bridge vlan set vid 1 dev veth2 state 0; bridge vlan set vid 1 dev veth3 state 0",
	"ip xfrm policy add src 0.0.0.0/0 dst 192.0.2.0/24 dir out action block",
}

// A command finds the copy, and later connections meet it, as if no connection had been made
// before.
func TestRunForgets(t *testing.T) {
	for n := range *machines {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(n), 59))
			s, sockets := randomSite(t, r)
			m := s.machine()
			for range 3 {
				from := append(odd, changes...)
				if r.IntN(2) == 0 {
					from = changes
				}
				s.forgets(m, sockets, strings.NewReplacer("$P", fmt.Sprint(20000+r.IntN(10)), "$Q",
					fmt.Sprint(80+r.IntN(4)), "$C", fmt.Sprint("172.17.0.", 2+r.IntN(2))).
					Replace(from[r.IntN(len(from))]))
			}
		})
	}
}

func TestRunForgetsWhatIsHard(t *testing.T) {
	s, sockets := randomSite(t, rand.New(rand.NewPCG(0, 59)))
	_ = s.spaces[0].Do(func() error { // which the kernel may lack
		return exec.Command("ip", "link", "set", "docker0", "type", "bridge", "vlan_filtering", "1").Run()
	})
	m := s.machine()
	for _, script := range unheard {
		s.forgets(m, sockets, script)
	}
}

func TestForgetRedirects(t *testing.T) {
	s := newSite(t, noLinkLocal)
	s.ip(1, "route add 172.17.0.3 via 172.17.0.1") // which sends a redirect
	made, err := makeCopy(replica.Order{Machine: s.machine()})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	c := made.(*machine)
	redirected := func() bool {
		return slices.Contains(strings.Fields(s.in(c.spaces[1], "ip route show cache")),
			"172.17.0.3")
	}
	testwait.Until(t, time.Minute, "the container is redirected", func() bool {
		if _, err := c.Dial(t.Context(), []replica.Dial{{Client: replica.Client{Space: 1}, Proto: "udp",
			To: netip.MustParseAddrPort("172.17.0.3:80")}}); err != nil {
			t.Fatal(err)
		}
		return redirected()
	})
	if err := c.forget(); err != nil {
		t.Fatal(err)
	}
	if redirected() {
		t.Error("the container's redirect is not forgotten")
	}
}

// The kernel tells of devices in which nothing has changed.
func TestMoved(t *testing.T) {
	s := newSite(t, noLinkLocal)
	made, err := makeCopy(replica.Order{Machine: s.machine()})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	c := made.(*machine)
	s.in(c.spaces[0], "ip link add br1 type bridge")
	s.setIn(c.spaces[0], "net.ipv6.conf.br1.disable_ipv6=1")
	s.in(c.spaces[0], "ip link set br1 up")
	s.in(c.spaces[0], "ip route add 10.9.0.0/24 dev br1 scope link")
	for _, x := range []struct {
		script string
		want   bool
	}{{"ip link set br1 down; ip link set br1 up", true}, // the route is gone
		{"ip link set br1 down; ip link set br1 up", false},
		{"ip link set docker0 mtu 1400", true},
		{"ip link set docker0 mtu 1300; ip link set docker0 mtu 1400", false},
		{"ip addr add 192.0.2.77/24 dev eth0", true},
		{"ip neigh add 172.17.0.9 lladdr 02:00:00:00:00:99 nud stale dev docker0", true}} {
		if !x.want { // the kernel removes this neighbour when the device goes down
			testwait.Until(t, time.Minute, "br1 has reported its multicast groups", func() bool {
				return slices.Contains(strings.Fields(s.in(c.spaces[0],
					"ip neigh show nud noarp dev br1")),
					"224.0.0.22")
			})
		}
		before, err := c.watch([]int{0})
		if err != nil {
			t.Fatal(err)
		}
		for command := range strings.SplitSeq(x.script, "; ") {
			s.in(c.spaces[0], command)
		}
		if moved, err := c.moved([]int{0}, before); err != nil || (len(moved) > 0) != x.want {
			t.Errorf("%s: %v, %v", x.script, moved, err)
		}
	}
}

// forgets compares what a command finds, and connections after it, with those in a fresh copy.
func (s *site) forgets(m *replica.Machine, sockets []replica.Socket, script string) {
	t := s.t
	t.Helper()
	var all []replica.Dial
	for i, from := range []replica.Client{{}, {Card: "eth0"}, {Bridge: "docker0"}, {Space: 1}} {
		for _, to := range []string{"192.0.2.10", "172.17.0.1", "127.0.0.1", "172.17.0.2", "172.17.0.3"} {
			for _, port := range []int{22, 80, 81, 20000, 20001, 20002, 20003, 20008} {
				all = append(all, replica.Dial{Client: from, Proto: "tcp", Explain: port%2 == 0 && i > 0,
					OnlyLost: true, To: netip.MustParseAddrPort(fmt.Sprint(to, ":", port))})
			}
		}
	}
	dial := func(in *replica.Session) []replica.Answer {
		t.Helper()
		got, err := in.Dial(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	scan := func(in *replica.Session) []uint16 {
		t.Helper()
		found, err := in.Scan(t.Context(), fromCard)
		if err != nil {
			t.Fatal(err)
		}
		return found[0]
	}
	used, fresh := s.start(m, sockets...), s.start(m, sockets...)
	dial(used)
	scan(used)
	if rule, ok := strings.CutPrefix(script, "nft "); ok {
		script = "nft '" + rule + "'"
	}
	script = "ls /sys/class/net; ip -o addr | cut -d ' ' -f 2-7; ip neigh\n" + script
	was, is := s.run(used, 0, script), s.run(fresh, 0, script)
	if !reflect.DeepEqual(was, is) {
		t.Errorf("%s: %+v, in a fresh copy %+v", script, was, is)
	}
	if got, want := scan(used), scan(fresh); !slices.Equal(got, want) {
		t.Errorf("%s: a scan finds %v, in a fresh copy %v", script, got, want)
	}
	got, want := dial(used), dial(fresh)
	for i := range all {
		for _, a := range []*replica.Answer{&got[i], &want[i]} {
			if l := a.Lost; l != nil && l.Reply { // to a port that the kernel chose
				l.Dst = netip.AddrPortFrom(l.Dst.Addr(), 0)
			}
		}
		if !reflect.DeepEqual(got[i].Outcomes, want[i].Outcomes) ||
			!reflect.DeepEqual(got[i].Lost, want[i].Lost) {
			t.Errorf("%s: %+v to %s: %+v, %+v, in a fresh copy %+v, %+v", script, all[i].Client,
				all[i].To, got[i].Outcomes, got[i].Lost, want[i].Outcomes, want[i].Lost)
		}
	}
}
