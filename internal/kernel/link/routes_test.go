package link

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

func routesNow(t *testing.T) (out string) {
	t.Helper()
	all, err := Routes()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		out += r.Text + "\n"
	}
	return out
}

func ip(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}

func TestRoutesHaveAllAttributes(t *testing.T) {
	pair(t)
	ip(t, "link set lo up")
	ip(t, "addr add 192.0.2.1/24 dev a")
	ip(t, "-6 addr add 2001:db8::1/64 dev a nodad")
	ip(t, "nexthop add id 7 via 192.0.2.2 dev a")
	for _, c := range []struct{ change, shows string }{
		{"route replace 198.51.100.0/24 dev a", "198.51.100.0/24 dev a"},
		{"route replace 198.51.100.0/24 dev a mtu lock 600", " lock 4 mtu 600"},
		{"route replace 198.51.100.0/24 dev a rtt 100ms", " rtt 800"},
		{"route replace 198.51.100.0/24 dev a hoplimit 3", " hoplimit 3"},
		{"route replace 198.51.100.0/24 dev a features ecn", " features 1"},
		{"route replace 198.51.100.0/24 dev a congctl reno", " congctl reno"},
		{"route replace 198.51.100.0/24 dev a realm 3", " attribute 11 "},
		{"route replace 198.51.100.0/24 nhid 7", " nhid "},
		{"route replace 198.51.100.0/24 nexthop via 192.0.2.2 nexthop via 192.0.2.3", " nexthops "},
		{"route replace 198.51.100.0/24 nexthop via 192.0.2.2 nexthop via 192.0.2.4", " nexthops "},
		{"route add 198.51.100.0/24 tos 0x10 dev a", " tos 16"},
		{"-6 route replace 2001:db8:1::/64 dev a mtu 1300", "2001:db8:1::/64 dev a "},
		{
			"route change local 192.0.2.1 dev a table local proto kernel scope host src " +
				"192.0.2.1 window 1000",
			"192.0.2.1/32 dev a src 192.0.2.1 table 255 type 2 scope 254 window 1000"},
		{"route add 192.0.2.9 dev a table local", "192.0.2.9/32 dev a table 255 "},
	} {
		before := routesNow(t)
		ip(t, c.change)
		if now := routesNow(t); now == before || !strings.Contains(now, c.shows) {
			t.Errorf("after %q, without %q:\n%s", c.change, c.shows, now)
		}
	}
}

func TestPoliciesHaveAllAttributes(t *testing.T) {
	pair(t)
	seen := map[string]string{}
	for _, c := range []struct{ rule, shows string }{
		{"from 192.0.2.0/24 table 9", "ip rule 7: from 192.0.2.0/24 to all table 9 "},
		{"to 192.0.2.1 table 9", "ip rule 7: from all to 192.0.2.1/32 table 9 "},
		{"table 9", "ip rule 7: from all to all table 9 "},
		{"not table 9", "ip rule 7: from all to all table 9 "},
		{"fwmark 1 table 9", "ip rule 7: from all to all table 9 "},
		{"fwmark 2 table 9", "ip rule 7: from all to all table 9 "},
		{"iif a table 9", "ip rule 7: from all to all table 9 "},
		{"l3mdev", "ip rule 7: from all to all table 0 "},
		{"prohibit", "ip rule 7: from all to all table 0 "},
		{"goto 32766", "ip rule 7: from all to all table 0 "},
	} {
		ip(t, "rule add pref 7 "+c.rule)
		got, err := Policies()
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := seen[got]; ok || !strings.Contains(got, c.shows) {
			t.Errorf("%q, without %q or as for %q:\n%s", c.rule, c.shows, before, got)
		}
		seen[got] = c.rule
		ip(t, "rule del pref 7")
	}
}

func TestRoutesShowPrograms(t *testing.T) {
	pair(t)
	ip(t, "link set lo up")
	ip(t, "addr add 192.0.2.1/24 dev a")
	before := routesNow(t)
	const kindOut = 11 // BPF_PROG_TYPE_LWT_OUT
	encap := &netlink.BpfEncap{}
	if err := encap.SetProg(nl.LWT_BPF_OUT, verdict(t, kindOut, 0), "pass"); err != nil {
		t.Fatal(err)
	}
	a, err := byName("a")
	if err != nil {
		t.Fatal(err)
	}
	err = netlink.RouteReplace(&netlink.Route{
		LinkIndex: a.Attrs().Index, Scope: unix.RT_SCOPE_LINK, Protocol: unix.RTPROT_KERNEL,
		Dst: &net.IPNet{IP: net.IPv4(192, 0, 2, 0), Mask: net.CIDRMask(24, 32)},
		Src: net.IPv4(192, 0, 2, 1), Encap: encap})
	if err != nil {
		t.Fatal(err)
	}
	if now := routesNow(t); now == before ||
		!strings.Contains(
			now, "192.0.2.0/24 dev a src 192.0.2.1 table 254 type 1 scope 253 encap bpf") {
		t.Errorf("%s, was\n%s", now, before)
	}
}
