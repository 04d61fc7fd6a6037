package lab

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	ebpflink "github.com/cilium/ebpf/link"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/bpftest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

var bridged = path.Spec{Mode: mode.Bridge, From: mode.FromContainer, To: mode.ToContainer}

var roundTheBridge = []string{
	"tc qdisc add dev veth-client clsact", "tc qdisc add dev veth-server clsact",
	"tc filter add dev veth-client ingress protocol all u32 match u32 0 0 action mirred egress " +
		"redirect dev veth-server",
	"tc filter add dev veth-server ingress protocol all u32 match u32 0 0 action mirred egress " +
		"redirect dev veth-client",
}

// Few machines have ethtool.
const tsoOff = "ethtool -K eth0 tso off"

const netfilterProgram = "attach a BPF program to netfilter"

func attachNetfilter(t *testing.T, ns *space) {
	t.Helper()
	p := bpftest.Program(t, "other", ebpf.Netfilter, ebpf.AttachNetfilter, 1)
	err := ns.Do(func() error {
		l, err := ebpflink.AttachNetfilter(ebpflink.NetfilterOptions{
			Program: p, ProtocolFamily: ebpflink.NetfilterProtoIPv4,
			Hook: ebpflink.NetfilterInetPreRouting, Priority: -4321})
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		return err
	})
	if err != nil {
		pathtest.SkipOrFail(t, "no program can be attached to netfilter (Linux 6.4): %v", err)
	}
}

func disturb(t *testing.T, ns *space, commands ...string) {
	t.Helper()
	for _, c := range commands {
		if c == tsoOff {
			if err := ns.Do(func() error {
				return link.SetOffload(inside, link.TSO, false)
			}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if c == netfilterProgram {
			attachNetfilter(t, ns)
			continue
		}
		f := strings.Fields(c)
		output(t, ns, f[0], f[1:]...)
	}
}

func settingsOf(t *testing.T, p *path.Path) []path.Setting {
	t.Helper()
	all, err := p.Inspect()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestInspectNoticesChanges(t *testing.T) {
	l := started(t, &Lab{})
	for _, c := range []struct {
		name     string
		in       string
		commands []string
		was, is  sample.Difference // is must be among those found
		diverts  bool
	}{
		{"mtu", "A", []string{"ip link set veth-server mtu 600"},
			sample.Difference{Where: "machine A", What: "MTU of veth-server", Was: "1500",
				Is: "600"}, sample.Difference{}, false},
		{"tbf", "A",
			[]string{"tc qdisc add dev veth-server root tbf rate 200mbit burst 32kb latency 50ms"},
			sample.Difference{Where: "machine A", What: "queueing discipline of veth-server",
				Was: "noqueue", Is: "tbf of 200 Mbit/s"}, sample.Difference{}, false},
		{"tbf-inside", "server",
			[]string{"tc qdisc add dev eth0 root tbf rate 200mbit burst 32kb latency 50ms"},
			sample.Difference{Where: "server container", What: "queueing discipline of eth0",
				Was: "noqueue", Is: "tbf"}, sample.Difference{}, false},
		{"mirred", "A", roundTheBridge,
			sample.Difference{Where: "machine A", What: "tc filter of veth-server", Was: "none",
				Is: "ingress u32"},
			sample.Difference{Where: "machine A", What: "tc filter of veth-client", Was: "none",
				Is: "ingress u32"}, true},
		{"filter-of-a-class", "A",
			[]string{"tc qdisc add dev veth-server root handle 1: htb default 1",
				"tc class add dev veth-server parent 1: classid 1:1 htb rate 1gbit",
				"tc filter add dev veth-server parent 1:1 protocol all u32 match u32 0 0 action " +
					"mirred egress redirect dev veth-client"},
			sample.Difference{Where: "machine A", What: "tc filter of veth-server", Was: "none",
				Is: "egress u32"}, sample.Difference{}, true},
		{"filter-of-a-queue", "A", []string{"tc qdisc add dev veth-server root handle 1: htb",
			"tc filter add dev veth-server parent 1: protocol all u32 match u32 0 0 action " +
				"mirred egress redirect dev veth-client"},
			sample.Difference{Where: "machine A", What: "tc filter of veth-server", Was: "none",
				Is: "egress u32"}, sample.Difference{}, true},
		{"ingress-qdisc", "A", []string{"tc qdisc add dev br-toll ingress",
			"tc filter add dev br-toll ingress protocol all u32 match u32 0 0 action mirred " +
				"egress redirect dev veth-client"},
			sample.Difference{Where: "machine A", What: "tc filter of br-toll", Was: "none",
				Is: "ingress u32"}, sample.Difference{}, true},
		{"netdev-hook", "A", []string{"nft add table netdev x",
			"nft add chain netdev x y { type filter hook ingress device veth-client priority 0 ; }",
			"nft add rule netdev x y fwd to veth-server"},
			sample.Difference{Where: "machine A", What: "chain netdev x y",
				Is: "filter hook 0 priority 0 policy accept with 1 rule"}, sample.Difference{},
			true},
		{"netdev-hook-of-two", "A", []string{"nft add table netdev x",
			"nft add chain netdev x y { type filter hook ingress devices = { lo, veth-server } " +
				"priority 0 ; }"},
			sample.Difference{Where: "machine A", What: "chain netdev x y", Is: "filter hook 0"},
			sample.Difference{}, true},
		{"inet-ingress", "A", []string{"nft add table inet x",
			"nft add chain inet x y { type filter hook ingress device br-toll priority 0 ; }"},
			sample.Difference{Where: "machine A", What: "chain inet x y", Is: "filter hook 5"},
			sample.Difference{}, true},
		{"bridge-family", "A", []string{"nft add table bridge x",
			"nft add chain bridge x y { type filter hook prerouting priority 0 ; }",
			"nft add rule bridge x y ip protocol tcp drop"},
			sample.Difference{Where: "machine A", What: "chain bridge x y", Is: "with 1 rule"},
			sample.Difference{}, false},
		{"macvlan-on-top", "A", []string{"ip link add mv0 link br-toll type macvlan mode passthru"},
			sample.Difference{Where: "machine A", What: "mv0", Is: "macvlan"},
			sample.Difference{Where: "machine A", What: "device on top of br-toll", Was: "none",
				Is: "mv0 (macvlan)"}, false},
		{"other-bridge", "A", []string{"ip link set veth-server master docker0"},
			sample.Difference{Where: "machine A", What: "master of veth-server", Was: "br-toll",
				Is: "docker0"}, sample.Difference{}, false},
		{"hairpin", "A", []string{"bridge link set dev veth-server hairpin on"},
			sample.Difference{Where: "machine A", What: "bridge port setting of veth-server",
				Was: "hairpin false", Is: "hairpin true"}, sample.Difference{}, false},
		{"flushed", "A", []string{"nft flush ruleset"},
			sample.Difference{Where: "machine A", What: "chain ip nat DOCKER", Was: "rules"},
			sample.Difference{Where: "machine A", What: "table ip filter", Was: "active"}, false},
		{"one-rule-more", "A", []string{"nft add rule ip filter DOCKER-USER drop"},
			sample.Difference{Where: "machine A", What: "chain ip filter DOCKER-USER",
				Was: "no rules", Is: "1 rule"}, sample.Difference{}, false},
		{"dormant", "A", []string{"nft add table ip filter { flags dormant ; }"},
			sample.Difference{Where: "machine A", What: "table ip filter", Was: "active",
				Is: "dormant"}, sample.Difference{}, false},
		{"policy", "A", []string{"nft chain ip filter FORWARD { policy accept ; }"},
			sample.Difference{Where: "machine A", What: "chain ip filter FORWARD",
				Was: "policy drop", Is: "policy accept"}, sample.Difference{}, false},
		{"legacy", "server", []string{"iptables-legacy -A OUTPUT -p tcp --dport 1 -j ACCEPT"},
			sample.Difference{Where: "server container", What: "table iptables-legacy filter",
				Is: "entries"}, sample.Difference{}, false},
		{"legacy-ip6", "server", []string{"ip6tables-legacy -A OUTPUT -p tcp --dport 1 -j ACCEPT"},
			sample.Difference{Where: "server container", What: "table ip6tables-legacy filter",
				Is: "entries"}, sample.Difference{}, false},
		{"xfrm-policy", "server",
			[]string{"ip xfrm policy add dir out src 0.0.0.0/0 dst 203.0.113.0/24 action block"},
			sample.Difference{Where: "server container",
				What: "xfrm policy dir out from 0.0.0.0/0 to 203.0.113.0/24 block", Is: "there"},
			sample.Difference{}, false},
		{"xfrm-policy-ip6", "server", []string{
			"ip xfrm policy add dir out src ::/0 dst 2001:db8::/64 action block"},
			sample.Difference{Where: "server container",
				What: "xfrm policy dir out from ::/0 to 2001:db8::/64 block", Is: "there"},
			sample.Difference{}, false},
		{"netfilter-program", "A", []string{netfilterProgram},
			// The machine's links have it if the kernel cannot tell the namespace.
			sample.Difference{Where: "machine A", What: "BPF ", Was: "none",
				Is: "(family 2 hook 0 priority -4321)"}, sample.Difference{}, false},
		{"qdisc-on-and-off", "A",
			[]string{"tc qdisc add dev veth-server root tbf rate 200mbit burst 32kb latency 50ms",
				"tc qdisc del dev veth-server root"},
			sample.Difference{Where: "machine A",
				What: "number of changes to traffic control of veth-server", Was: "0", Is: "3"},
			sample.Difference{}, false},
		{"rule-and-back", "server", []string{"nft add table ip x", "nft delete table ip x"},
			sample.Difference{Where: "server container",
				What: "number of changes to packet filters", Was: "2", Is: "4"},
			sample.Difference{}, false},
		{"mtu-and-back", "server", []string{"ip link set eth0 mtu 600",
			"ip link set eth0 mtu 1500"},
			sample.Difference{Where: "server container",
				What: "number of changes to the link of eth0", Was: "0", Is: "2"},
			sample.Difference{}, false},
		{"route-and-back", "server", []string{
			"ip route add 203.0.113.0/24 dev eth0", "ip route del 203.0.113.0/24"},
			sample.Difference{Where: "server container", What: "number of changes to routes",
				Was: "0", Is: "2"}, sample.Difference{}, false},
		{"policy-and-back", "server", []string{
			"ip rule add to 203.0.113.0/24 blackhole", "ip rule del to 203.0.113.0/24 blackhole"},
			sample.Difference{Where: "server container",
				What: "number of changes to routing policies", Was: "0", Is: "2"},
			sample.Difference{}, false},
		{"sysctl", "server", []string{"sysctl -q -w net.ipv4.tcp_autocorking=0"},
			sample.Difference{Where: "server container", What: "sysctl net.ipv4.tcp_autocorking",
				Was: "1", Is: "0"}, sample.Difference{}, false},
		{"offload", "server", []string{tsoOff},
			sample.Difference{Where: "server container",
				What: "offload tx-tcp-segmentation of eth0", Was: "on", Is: "off"},
			sample.Difference{}, false},
		{"gso-size", "server", []string{"ip link set eth0 gso_max_size 4000"},
			sample.Difference{Where: "server container", What: "gso_max_size of eth0", Was: "65536",
				Is: "4000"}, sample.Difference{}, false},
		{"route", "server", []string{"ip route add 203.0.113.0/24 dev eth0 initcwnd 99"},
			sample.Difference{Where: "server container", What: "initcwnd 99", Is: "there"},
			sample.Difference{}, false},
		{"address", "A", []string{"ip addr add 203.0.113.1/24 dev br-toll"},
			sample.Difference{Where: "machine A", What: "IPv4 address of br-toll",
				Was: "172.30.0.1/16", Is: "203.0.113.1/24"}, sample.Difference{}, false},
		{"gone", "A", []string{"ip link del veth-server"},
			sample.Difference{Where: "machine A", What: "veth-server", Was: "veth"},
			sample.Difference{Where: "server container", What: "eth0", Was: "veth"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s *site
			l.test.built = func(x *site) { s = x }
			defer func() { l.test.built = nil }()
			p := build(t, l, bridged)
			before := settingsOf(t, p)
			if err := path.Undiverted(before); err != nil {
				t.Fatal(err)
			}
			ns := map[string]*space{"A": s.a.ns, "server": s.Servers[0].ns}[c.in]
			disturb(t, ns, c.commands...)
			now := settingsOf(t, p)
			found := path.Differences(before, now)
			for _, want := range []sample.Difference{c.was, c.is} {
				if !hasDifference(found, want) {
					t.Errorf("found %+v, want %+v", found, want)
				}
			}
			if err := path.Undiverted(now); (err != nil) != c.diverts {
				t.Errorf("of what may divert: %v", err)
			}
		})
	}
}

func hasDifference(found []sample.Difference, want sample.Difference) bool {
	for _, d := range found {
		if d.Where == want.Where && strings.Contains(d.What, want.What) &&
			matches(d.Was, want.Was) && matches(d.Is, want.Is) {
			return true
		}
	}
	return want == sample.Difference{}
}

func matches(got, want string) bool {
	return (got == "") == (want == "") && strings.Contains(got, want)
}

func TestBypassedBridgeIsRefused(t *testing.T) {
	l := started(t, &Lab{})
	l.test.built = func(s *site) {
		disturb(t, s.a.ns, roundTheBridge...)
		disturb(t, s.a.ns, "nft add table bridge x",
			"nft add chain bridge x y { type filter hook prerouting priority 0 ; }",
			"nft add rule bridge x y counter")
		hops := append(append([]path.Hop{}, s.path.Hops...), s.path.Guards...)
		before, err := path.ReadAll(hops)
		if err != nil {
			t.Fatal(err)
		}
		tr := pathtest.Exchange(t, s.path)
		defer tr.Stop()
		after, err := path.ReadAll(hops)
		if err != nil {
			t.Fatal(err)
		}
		if text := output(t, s.a.ns, "nft", "list", "table", "bridge", "x"); !testgolden.HasLine(text,
			"\t\tcounter packets 0 bytes 0") {
			t.Fatalf("the bridge was not bypassed: %s", text)
		}
		// If the counters show it, the path need not be refused.
		if w := path.Witness(hops, before, after, tr.Moved...); !w.OK {
			t.Errorf("the counters contradict by themselves: %s", w.Evidence)
		}
	}
	p, err := l.Build(context.Background(), bridged)
	if err == nil {
		_ = p.Close()
		t.Fatal("a path was built whose bridge is bypassed")
	}
	var u *machine.UnsupportedError
	if want := "build bridge from container to container: packets may bypass the hops, unseen by " +
		"their counters, because of: tc filter of veth-server (machine A): ingress u32; tc " +
		"filter of veth-client (machine A): ingress u32"; !errors.As(err, &u) || err.Error() != want || u.Hint() == "" {
		t.Errorf("%q, want %q", err, want)
	}
}
