package nft

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

var translatedPacket = firewall.Packet{Proto: "tcp", Src: netip.MustParseAddr("203.0.113.1"),
	Dst: netip.MustParseAddr("172.17.0.2"), Port: 80,
	In: "eth0", Out: "docker0", Orig: netip.MustParseAddrPort("198.18.0.1:8080")}

func dropping(t *testing.T, matches []string,
	write func(chains []string) error) map[string]firewall.Outcome {
	t.Helper()
	out := map[string]firewall.Outcome{}
	inSpace(t, func() error {
		var names []string
		for i := range matches {
			names = append(names, fmt.Sprintf("c%d", i))
		}
		err := write(names)
		if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
			t.Skip(err)
		}
		if err != nil {
			return err
		}
		all, err := Read()
		if err != nil {
			return err
		}
		for i, m := range matches {
			for _, c := range all.Chains {
				if c.Name == names[i] {
					c.Hook, c.Kind = firewall.Forward, firewall.Filter
					out[m] = firewall.Rules{Chains: []firewall.Chain{c}}.Walk(
						firewall.Filter, firewall.Forward, translatedPacket)
				}
			}
		}
		return nil
	})
	return out
}

func nftDropping(t *testing.T, matches []string) map[string]firewall.Outcome {
	return dropping(t, matches, func(chains []string) error {
		text := "table inet mine {\n"
		for i, c := range chains {
			text += "chain " + c + " {\n" + matches[i] + " drop\n}\n"
		}
		return program("nft", text+"}\n", "-f", "-")
	})
}

func iptablesDropping(t *testing.T, matches []string) map[string]firewall.Outcome {
	return dropping(t, matches, func(chains []string) error {
		text, rules := "*filter\n", ""
		for i, c := range chains {
			text += ":" + c + " - [0:0]\n"
			rules += "-A " + c + " " + matches[i] + " -j DROP\n"
		}
		return program("iptables-restore", text+rules+"COMMIT\n")
	})
}

func checkDropping(t *testing.T, want map[string]firewall.Verdict,
	write func(*testing.T, []string) map[string]firewall.Outcome) {
	t.Helper()
	var matches []string
	for m := range want {
		matches = append(matches, m)
	}
	got := write(t, matches)
	for m, w := range want {
		if got[m].Verdict != w || got[m].Unread != nil {
			t.Errorf("%s: %+v, want %s", m, got[m], w)
		}
	}
}

func TestReadConnection(t *testing.T) {
	const drop, accept = firewall.Drop, firewall.Accept
	checkDropping(t, map[string]firewall.Verdict{
		"ct original ip daddr 198.18.0.1":                     drop,
		"ct original ip daddr 198.18.0.0/15":                  drop,
		"ct original ip daddr != 198.18.0.0/15":               accept,
		"ct original ip daddr 172.17.0.2":                     accept,
		"ct original ip daddr 198.18.0.0-198.18.0.9":          drop,
		"ct original ip saddr 203.0.113.0/24":                 drop,
		"ct reply ip saddr 172.17.0.2":                        drop,
		"ct reply ip saddr 198.18.0.1":                        accept,
		"ct reply ip daddr 203.0.113.1":                       drop,
		"ct original ip6 daddr fe80::1":                       accept,
		"meta l4proto tcp ct original proto-dst 8080":         drop,
		"meta l4proto tcp ct original proto-dst 80":           accept,
		"meta l4proto tcp ct original proto-dst 8000-8100":    drop,
		"meta l4proto tcp ct original proto-dst != 8000-8100": accept,
		"meta l4proto tcp ct original proto-dst { 90, 8080 }": drop,
		"meta l4proto tcp ct original proto-dst { 90, 91 }":   accept,
		"meta l4proto udp ct original proto-dst 8080":         accept,
		"meta l4proto tcp ct reply proto-src 80":              drop,
		"ct original protocol tcp":                            drop,
		"ct original protocol udp":                            accept,
		"ct direction original":                               drop,
		"ct direction reply":                                  accept,
		"ct direction != reply":                               drop,
		"ct status dnat":                                      drop,
		"ct status snat":                                      accept,
		"ct status & (dnat|snat) == dnat":                     drop,
		"ct status & (dnat|snat) == snat":                     accept,
		"ct status ! dnat":                                    accept, "ct status assured": accept,
		"ct state new":                                   drop,
		"ct state established,related":                   accept,
		"ct state != new":                                accept,
		"ct state { new, established }":                  drop,
		"ct state & (new|established) == new":            drop,
		"ct state & (new|established) == established":    accept,
		"ct state . ct direction { new . original }":     drop,
		"meta l4proto != udp":                            drop,
		"meta l4proto != tcp":                            accept,
		"meta l4proto esp":                               accept,
		"meta nfproto != ipv6":                           drop,
		"tcp dport 80-90":                                drop,
		"tcp dport 81-90":                                accept,
		"tcp dport != 80-90":                             accept,
		"tcp dport >= 80 tcp dport <= 90":                drop,
		"tcp dport != 22 tcp dport != 443":               drop,
		"tcp dport != 22 tcp dport != 80":                accept,
		"tcp dport > 80":                                 accept,
		"tcp dport < 81":                                 drop,
		"ip saddr 203.0.113.0-203.0.113.9":               drop,
		"ip saddr != 10.0.0.0/8 ip saddr != 203.0.113.1": accept,
		"iif lo":                                accept,
		"iif != lo":                             drop,
		`iifname "eth0" iifname != "eth1"`:      drop,
		"ip saddr & 255.0.0.255 == 203.0.0.1":   drop,
		"ip saddr & 255.0.0.255 == 203.0.0.2":   accept,
		"meta l4proto { tcp, udp } th dport 80": drop,
	}, nftDropping)
}

func TestReadConntrack(t *testing.T) {
	const drop, accept = firewall.Drop, firewall.Accept
	checkDropping(t, map[string]firewall.Verdict{
		"-p tcp -m conntrack --ctorigdstport 8080":               drop,
		"-p tcp -m conntrack --ctorigdstport 80":                 accept,
		"-p tcp -m conntrack ! --ctorigdstport 80":               drop,
		"-p tcp -m conntrack --ctorigdstport 8000:8100":          drop,
		"-m conntrack --ctorigdst 198.18.0.1":                    drop,
		"-m conntrack --ctorigdst 198.18.0.0/15":                 drop,
		"-m conntrack ! --ctorigdst 198.18.0.0/15":               accept,
		"-m conntrack --ctorigsrc 203.0.113.0/24":                drop,
		"-m conntrack --ctreplsrc 172.17.0.2":                    drop,
		"-m conntrack --ctrepldst 203.0.113.2":                   accept,
		"-m conntrack --ctproto 6":                               drop,
		"-m conntrack ! --ctproto 6":                             accept,
		"-m conntrack --ctdir ORIGINAL":                          drop,
		"-m conntrack --ctdir REPLY":                             accept,
		"-m conntrack --ctstate DNAT":                            drop,
		"-m conntrack ! --ctstate DNAT":                          accept,
		"-m conntrack --ctstate SNAT":                            accept,
		"-m conntrack --ctstate NEW":                             drop,
		"-m conntrack ! --ctstate RELATED,ESTABLISHED":           drop,
		"-m conntrack --ctstatus NONE":                           accept,
		"-m conntrack --ctstatus ASSURED":                        accept,
		"-m conntrack --ctstate NEW --ctorigdstport 8080 -p tcp": drop,
		"-m conntrack --ctdir ORIGINAL --ctorigdst 10.0.0.1":     accept,
		"-m addrtype --dst-type MULTICAST":                       accept,
		"-m addrtype --dst-type LOCAL,UNICAST":                   drop,
		"-m addrtype ! --dst-type LOCAL":                         drop,
		"! -p udp":                                               drop,
		"-p esp":                                                 accept,
	}, iptablesDropping)
}

func TestReadUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		write   func(*testing.T, []string) map[string]firewall.Outcome
		matches []string
	}{
		"nft": {nftDropping, []string{"ct mark 5",
			"meta l4proto tcp ct original proto-src 1024-65535", "ct bytes > 5", "ct expiration 5s",
			"ct zone 3",
			`ct helper "ftp"`, "ct status != dnat", "ct label 3", "limit rate 5/second",
			"quota 5 mbytes", "meta skuid 5", "meta mark 5", "meta mark 1-5",
			"meta length 40", "rt classid 5", "tcp sport 80", "ip ttl < 5",
			"tcp flags syn / syn,ack", "tcp option maxseg size 5", "numgen random mod 2 1",
			"fib saddr . iif oif missing",
			"jhash ip saddr mod 2 1", "meta pkttype host", "fib daddr . iif type != multicast",
			"meta iifgroup 3"}},
		"iptables": {iptablesDropping, []string{
			"-p tcp -m multiport --dports 80,443", "-m mark --mark 1", "-p tcp -m tcp --sport 53",
			"-m limit --limit 3/min",
			"-m iprange --src-range 203.0.113.0-203.0.113.9",
			"-p tcp -m conntrack --ctorigsrcport 1024:65535", "-m conntrack --ctexpire 5",
			"-m addrtype ! --dst-type LOCAL --limit-iface-in", "-m addrtype --dst-type BLACKHOLE",
			"-p tcp --syn"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.write(t, c.matches)
			for _, m := range c.matches {
				if len(got[m].Unread) != 1 {
					t.Errorf("%s: %+v", m, got[m])
				}
			}
		})
	}
}

func TestReadStatements(t *testing.T) {
	for statement, doubts := range map[string]int{"queue num 1": 1, "notrack": 1,
		"ip daddr set 10.0.0.1": 1, "ct mark set 5": 0, "meta mark set 5": 0,
		"counter": 0, "log": 0, "limit rate 5/second": 0, "tproxy to :80": 1, "dup to 10.0.0.1": 1,
		"fwd to eth0": 1, "ct zone set 5": 1} {
		inSpace(t, func() error {
			in := "meta l4proto tcp " + statement
			if strings.HasPrefix(statement, "tproxy") || strings.HasPrefix(statement, "dup") {
				in = "ip protocol tcp " + statement
			}
			cmd := exec.Command(
				"nft",
				"table ip mine { chain c { type filter hook prerouting priority -300; "+in+"; }; }")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Logf("%s: not here: %s", statement, out)
				return nil
			}
			all, err := Read()
			got := all.Walk(firewall.Filter, firewall.Prerouting, translatedPacket)
			if len(got.Unread) != doubts {
				t.Errorf("%s: %+v", statement, got)
			}
			return err
		})
	}
}
