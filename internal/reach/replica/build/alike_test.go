package build

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

var machines = flag.Int("machines", 2, "random machines for TestAlikeIsAsEach")

// odd are rules that a random machine may have for a port, by iptables and by nft. $P is a port, $Q
// a port of a container, $C a container's address.
var odd = []string{
	"iptables -A INPUT -p tcp --dport $P -j DROP",
	"iptables -A INPUT -p tcp --dport $P -s 192.0.2.0/24 -j REJECT",
	"iptables -I INPUT -p tcp --sport $P -j ACCEPT",
	"iptables -A OUTPUT -p tcp --sport $P -d 172.17.0.3 -j DROP",
	"iptables -I INPUT -p tcp --dport $P:20010 -j ACCEPT",
	"iptables -A INPUT -p tcp ! --dport $P -d 172.17.0.1 -j DROP",
	"iptables -A FORWARD -p tcp --dport $Q -j DROP",
	"iptables -A FORWARD -p tcp -d $C --dport $Q -j REJECT --reject-with tcp-reset",
	"iptables -A FORWARD -p tcp -m multiport --dports $Q,81 -m conntrack --ctstate NEW -j DROP",
	"iptables -A FORWARD -m conntrack --ctorigdstport $P -p tcp -j DROP",
	"iptables -t nat -I PREROUTING -p tcp --dport $P -j DNAT --to-destination $C:$Q",
	"iptables -t nat -A PREROUTING -p tcp --dport $P -j REDIRECT --to-ports 20003",
	"iptables -t nat -A OUTPUT -p tcp -d 192.0.2.10 --dport $P -j DNAT --to-destination $C",
	"iptables -t nat -A PREROUTING -p tcp -d 192.0.2.10 -i docker0 -j DNAT --to-destination $C:$Q",
	"iptables -t nat -A POSTROUTING -p tcp -d $C --dport $Q -j MASQUERADE",
	"iptables -t mangle -A PREROUTING -p tcp --dport $P -j MARK --set-mark 7",
	"iptables -A FORWARD -m mark --mark 7 -j DROP",
	"iptables -t raw -A PREROUTING -p tcp --dport $P -s 192.0.2.20 -j DROP",
	"nft add rule inet x in tcp dport $P drop",
	"nft add rule inet x in tcp dport != $P ip saddr 172.17.0.3 drop",
	"nft add rule inet x in tcp dport { 19999, $P-20010 } reject",
	"nft add rule inet x in tcp dport vmap { $P : drop, 19999 : accept }",
	"nft add rule inet x in tcp dport > $P drop",
	"nft add rule inet x in ip daddr . tcp dport { 192.0.2.10 . $P } drop",
	"nft add rule inet x in meta mark set 9 tcp dport $P accept",
	"nft add rule inet x in meta mark 9 ip saddr 192.0.2.20 tcp dport 20002 drop",
	"nft add rule inet x in meta l4proto tcp ct original proto-dst $P reject with tcp reset",
	"nft add rule inet x in tcp dport & 3 == 1 drop",
	"nft add rule inet x forward th dport $Q drop",
	"nft add rule inet x in meta l4proto tcp meta mark set @th,0,32 meta mark & 65535 == $P drop",
	"nft add rule inet x in meta nfproto ipv4 @nh,176,16 $P drop",
}

// randomSite makes a machine that publishes ports of containers as Docker does, whose firewall has
// some odd rules.
func randomSite(t *testing.T, r *rand.Rand) (*site, []replica.Socket) {
	s := newSite(t, noLinkLocal)
	run := func(command string) { s.in(s.spaces[0], command) }
	run("nft add table inet x")
	run("nft add chain inet x in { type filter hook input priority 5 ; }")
	run("nft add chain inet x forward { type filter hook forward priority 5 ; }")
	run("iptables -t nat -N DOCKER")
	run("iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER")
	run("iptables -t nat -A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER")
	sockets := []replica.Socket{socket(0, "0.0.0.0:22"), socket(0, "0.0.0.0:20008"),
		socket(0, "127.0.0.1:20009")}
	for i := range 8 {
		container, port := 2+i%2, 80+i/2
		addr := fmt.Sprintf("172.17.0.%d:%d", container, port)
		sockets = append(sockets, socket(container-1, fmt.Sprintf("0.0.0.0:%d", port)))
		if r.IntN(8) == 0 {
			continue
		}
		relay := socket(0, fmt.Sprintf("0.0.0.0:%d", 20000+i))
		relay.Relay = netip.MustParseAddrPort(addr)
		sockets = append(sockets, relay)
		if r.IntN(8) > 0 {
			run(fmt.Sprintf("iptables -t nat -A DOCKER ! -i docker0 -p tcp --dport %d -j DNAT "+
				"--to-destination %s", 20000+i, addr))
		}
	}
	for range 1 + r.IntN(5) {
		run(strings.NewReplacer("$P", fmt.Sprint(20000+r.IntN(10)), "$Q", fmt.Sprint(80+r.IntN(4)),
			"$C", fmt.Sprint("172.17.0.", 2+r.IntN(2))).Replace(odd[r.IntN(len(odd))]))
	}
	return s, sockets
}

// TestAlikeIsAsEach compares the outcomes of connections and scans that are made once for all ports
// that are alike with those of each.
func TestAlikeIsAsEach(t *testing.T) {
	saved, savedPorts := 0, 0
	for n := range *machines {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(n), 58))
			s, sockets := randomSite(t, r)
			m := s.machine()
			made, err := makeCopy(replica.Order{Machine: m, Sockets: sockets})
			if err != nil {
				t.Fatal(err)
			}
			defer made.Close()
			c := made.(*machine)
			var dials []replica.Dial
			var scans []replica.Scan
			for _, from := range []replica.Client{{}, {Card: "eth0"}, {Bridge: "docker0"}, {Space: 1},
				{Card: "eth0", Source: netip.MustParseAddr("203.0.113.1")}} {
				for _, to := range []string{"192.0.2.10", "172.17.0.1", "127.0.0.1", "172.17.0.2"} {
					scans = append(scans, replica.Scan{Client: from, To: netip.MustParseAddr(to)})
					for _, port := range []int{22, 80, 81, 82, 83, 20000, 20001, 20002, 20003, 20004, 20005,
						20006, 20007, 20008, 20009} {
						dials = append(dials, replica.Dial{Client: from, Proto: "tcp",
							To: netip.MustParseAddrPort(fmt.Sprint(to, ":", port))})
					}
				}
			}
			got, err := c.Dial(t.Context(), dials)
			if err != nil {
				t.Fatal(err)
			}
			gotPorts, err := c.Scan(t.Context(), scans)
			if err != nil {
				t.Fatal(err)
			}
			first, _ := c.same().ports(c.ports())
			savedPorts += len(c.ports()) - len(first)
			all := make([]int, len(dials))
			for i := range all {
				all[i] = i
			}
			saved += len(dials) - len(c.same().groups(dials, all))
			c.same, c.scans = func() *alikes { return &alikes{} }, nil
			want, err := c.Dial(t.Context(), dials)
			if err != nil {
				t.Fatal(err)
			}
			wantPorts, err := c.Scan(t.Context(), scans)
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range scans {
				if !slices.Equal(gotPorts[i], wantPorts[i]) {
					t.Errorf("scan of %s by %+v: %d, each port %d\n%s", x.To, x.Client, gotPorts[i],
						wantPorts[i], s.in(s.spaces[0], "nft list ruleset"))
				}
			}
			for i, d := range dials {
				if !reflect.DeepEqual(got[i].Outcomes, want[i].Outcomes) {
					t.Errorf("%+v to %s: %+v, by itself %+v\n%s", d.Client, d.To, got[i].Outcomes,
						want[i].Outcomes, s.in(s.spaces[0], "nft list ruleset"))
				}
			}
		})
	}
	if saved == 0 || savedPorts == 0 {
		t.Errorf("%d connections and %d ports were alike", saved, savedPorts)
	}
}
