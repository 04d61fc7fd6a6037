package nft

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/netns"
)

func inSpace(t *testing.T, f func() error) {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, unix.EPERM) && os.Getenv("CI") != "true" {
		t.Skip("network namespaces need root here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}

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
table inet mine {
	chain f {
		type filter hook forward priority 0; policy drop;
		ct state established,related accept
		meta nfproto ipv6 drop
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
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			inSpace(t, func() error {
				err := write()
				if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
					t.Skip(err)
				}
				if err != nil {
					return err
				}
				r, err := Read()
				checkRead(t, r, to)
				return err
			})
		})
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

func checkRead(t *testing.T, r firewall.Rules, to netip.AddrPort) {
	t.Helper()
	far, own := netip.MustParseAddr("198.18.0.2"), netip.MustParseAddr("198.18.0.1")
	p := firewall.Packet{Proto: "tcp", Src: far, Dst: own, Port: 8080, In: "eth0", DstLocal: true}
	if got := r.Walk(firewall.NAT, firewall.Prerouting, p); got.Verdict != firewall.DNAT ||
		got.To != to || got.Unread != nil {
		t.Errorf("from outside: %+v", got)
	}
	p.In = "docker0"
	if got := r.Walk(firewall.NAT, firewall.Prerouting, p); got.Verdict != firewall.Accept {
		t.Errorf("from a container: %+v", got)
	}
	p = firewall.Packet{Proto: "tcp", Src: far, Dst: to.Addr(), Port: 80, In: "eth0",
		Out: "docker0"}
	if got := r.Walk(firewall.Filter, firewall.Forward, p); got.Verdict != firewall.Accept ||
		got.Unread != nil {
		t.Errorf("on to the container: %+v", got)
	}
	p.Port = 81
	if got := r.Walk(firewall.Filter, firewall.Forward, p); got.Verdict != firewall.Drop {
		t.Errorf("to another port: %+v", got)
	}
}
