package nft

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/bridgetoll/bridgetoll/internal/kernel/firewall"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestRead(t *testing.T) {
	to := netip.MustParseAddrPort("172.17.0.2:80")
	writers := map[string]func() error{
		"netlink": func() error {
			return Apply([]Chain{
				{Table: "nat", Name: "DOCKER", Rules: []Rule{
					{Match: []Match{In("docker0")}, Verdict: Return()},
					{Match: []Match{NotIn("docker0"), TCPDport(8080)}, Verdict: DNAT(to)}}},
				{Table: "nat", Name: "PREROUTING", Hook: Prerouting,
					Rules: []Rule{{Match: []Match{DstLocal()}, Verdict: Jump("DOCKER")}}},
				{Table: "filter", Name: "FORWARD", Hook: Forward, Drop: true, Rules: []Rule{
					{Match: []Match{Established()}, Verdict: Accept()},
					{Match: []Match{Dst(netip.MustParsePrefix("172.16.0.0/12")), TCPDport(80)},
						Verdict: Accept()}}},
			})
		},
		"nft": func() error {
			return program("nft", `table ip nat {
	chain DOCKER {
		iifname "docker0" return
		iifname != "docker0" tcp dport 8080 dnat to 172.17.0.2:80
	}
	chain PREROUTING {
		type nat hook prerouting priority dstnat;
		fib daddr type local jump DOCKER
	}
}
table ip filter {
	chain FORWARD {
		type filter hook forward priority 0; policy drop;
		ct state established,related accept
		ip daddr 172.16.0.0/12 tcp dport 80 counter accept
	}
}
`, "-f", "-")
		},
		"iptables": func() error {
			return program("iptables-restore", `*nat
:PREROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A DOCKER -i docker0 -j RETURN
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
COMMIT
*filter
:FORWARD DROP [0:0]
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -d 172.16.0.0/12 -p tcp -m tcp --dport 80 -j ACCEPT
COMMIT
`)
		},
	}
	const want = `filter FORWARD, drop: and ct -j ACCEPT
filter FORWARD, drop: -d 172.16.0.0/12 -p tcp --dport 80 -j ACCEPT
nat DOCKER: -i docker0 -j RETURN
nat DOCKER: ! -i docker0 -p tcp --dport 8080 -j DNAT to 172.17.0.2:80
nat PREROUTING: --dst-type LOCAL -j DOCKER`
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			got := strings.ReplaceAll(read(t, write), "conntrack", "ct") // iptables' match
			if got != want {
				t.Errorf("%s", got)
			}
		})
	}
}

// read returns the rules that write made.
func read(t *testing.T, write func() error) string {
	t.Helper()
	var out []string
	netnstest.Do(t, func() error {
		err := write()
		if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
			t.Skip(err)
		}
		if err != nil {
			return err
		}
		all, err := Read()
		slices.SortFunc(all, func(a, b firewall.Chain) int {
			return strings.Compare(a.Table+a.Name, b.Table+b.Name)
		})
		for _, c := range all {
			name := c.Table + " " + c.Name
			if c.Drop {
				name += ", drop"
			}
			for _, r := range c.Rules {
				out = append(out, strings.TrimSpace(name+": "+r.String()))
			}
		}
		return err
	})
	return strings.Join(out, "\n")
}

func TestReadRules(t *testing.T) {
	var rules, want []string
	for _, c := range [][2]string{
		{`iifname "veth*" oifname != "eth0" drop`, "-i veth+ ! -o eth0 -j DROP"},
		{`iifname "eth0" iifname != "eth1" drop`, "-i eth0 and meta -j DROP"},
		{"iif lo accept", "-i lo -j ACCEPT"},
		{"oif != lo accept", "! -o lo -j ACCEPT"},
		{"ip saddr != 10.0.0.0/8 drop", "! -s 10.0.0.0/8 and IPv4 -j DROP"},
		{"ip saddr & 255.0.0.255 == 203.0.0.1 drop", "and IPv4 -j DROP"},
		{"ip6 daddr fd00::/16 drop", "-d fd00::/16 and IPv6 -j DROP"},
		{"ip6 daddr fd00::1 drop", "-d fd00::1/128 and IPv6 -j DROP"},
		{"meta nfproto ipv6 drop", "and IPv6 -j DROP"},
		{"meta l4proto esp drop", "-p 50 -j DROP"},
		{"meta l4proto != udp drop", "and meta -j DROP"},
		{"udp dport != 53 drop", "-p udp ! --dport 53 -j DROP"},
		{"tcp sport 80 drop", "-p tcp and payload -j DROP"},
		{"tcp dport { 80, 90 } drop", "-p tcp by a set -j DROP"},
		{"tcp dport vmap { 80 : drop }", "-p tcp by a set"},
		{"fib saddr type local drop", "--src-type LOCAL -j DROP"},
		{"fib daddr type != local drop", "! --dst-type LOCAL -j DROP"},
		{"fib daddr type multicast drop", "and fib -j DROP"},
		{"fib daddr . iif type local drop", "and fib -j DROP"},
		{"meta mark 5 drop", "and meta -j DROP"},
		{"meta mark set 5", "and meta"},
		{"ct mark set 5", "and ct"},
		{"limit rate 5/second reject", "and limit -j REJECT"},
		{"log", "and log"},
		{"counter", ""},
		{"goto d", "-j d"},
	} {
		rules, want = append(rules, c[0]), append(want, strings.TrimSpace("x c: "+c[1]))
	}
	got := read(t, func() error {
		return program("nft", "table inet x {\nchain d {\n}\nchain c {\n"+
			strings.Join(rules, "\n")+"\n}\n}\n", "-f", "-")
	})
	for i, line := range strings.Split(got, "\n") {
		if i >= len(want) || line != want[i] {
			t.Errorf("%q, want %q", line, append(want, "nothing")[min(i, len(want))])
		}
	}
	if n := strings.Count(got, "\n") + 1; n != len(want) {
		t.Errorf("%d rules, want %d", n, len(want))
	}
}

func program(name, input string, args ...string) error {
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := out.WriteString(input); err != nil {
		return err
	}
	out.Close()
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stderr = in, os.Stderr
	return cmd.Run()
}

func FuzzReadRule(f *testing.F) {
	f.Add([]byte("\x00"), []byte("eth0"), uint32(1), uint32(12), uint32(4))
	f.Add([]byte{0xff, 0xff, 0xf0, 0}, []byte{172, 16, 0, 0}, uint32(8), uint32(16), uint32(4))
	f.Fuzz(func(t *testing.T, mask, data []byte, reg, offset, size uint32) {
		for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4,
			nftables.TableFamilyIPv6} {
			for _, from := range []any{
				&expr.Meta{Key: expr.MetaKey(offset), Register: reg},
				&expr.Payload{Base: expr.PayloadBaseNetworkHeader, DestRegister: reg,
					Offset: offset, Len: size},
				&expr.Immediate{Register: reg, Data: data},
			} {
				_ = readRule([]any{from,
					&expr.Bitwise{SourceRegister: reg, DestRegister: reg, Mask: mask},
					&expr.Cmp{Op: expr.CmpOp(size), Register: reg, Data: data},
					&expr.NAT{Type: expr.NATTypeDestNAT, RegAddrMin: reg, RegProtoMin: offset},
				}, family).String()
			}
		}
	})
}
