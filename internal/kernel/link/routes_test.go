package link

import (
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
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

// hash matches the checksum of attributes that toll does not know, which differs between kernels.
var hash = regexp.MustCompile(`\b[0-9a-f]{8}\b`)

func TestRoutesHaveAllAttributes(t *testing.T) {
	pair(t)
	ip(t, "link set lo up")
	ip(t, "addr add 192.0.2.1/24 dev a")
	ip(t, "-6 addr add 2001:db8::1/64 dev a nodad")
	ip(t, "nexthop add id 7 via 192.0.2.2 dev a")
	for _, c := range []struct{ change, shows string }{
		{"route replace 198.51.100.0/24 dev a", "198.51.100.0/24 dev a table 254 type 1 scope 253"},
		{"route replace 198.51.100.0/24 dev a mtu lock 600",
			"198.51.100.0/24 dev a table 254 type 1 scope 253 lock 4 mtu 600"},
		{"route replace 198.51.100.0/24 dev a rtt 100ms",
			"198.51.100.0/24 dev a table 254 type 1 scope 253 rtt 800"},
		{"route replace 198.51.100.0/24 dev a hoplimit 3",
			"198.51.100.0/24 dev a table 254 type 1 scope 253 hoplimit 3"},
		{"route replace 198.51.100.0/24 dev a features ecn",
			"198.51.100.0/24 dev a table 254 type 1 scope 253 features 1"},
		{"route replace 198.51.100.0/24 dev a congctl reno",
			"198.51.100.0/24 dev a table 254 type 1 scope 253 congctl reno"},
		{"route replace 198.51.100.0/24 dev a realm 3",
			"198.51.100.0/24 dev a table 254 type 1 scope 253 attribute 11 HASH"},
		{"route replace 198.51.100.0/24 nhid 7",
			"198.51.100.0/24 via 192.0.2.2 dev a table 254 type 1 nhid HASH"},
		{"route replace 198.51.100.0/24 nexthop via 192.0.2.2 nexthop via 192.0.2.3",
			"198.51.100.0/24 table 254 type 1 nexthops HASH"},
		{"route replace 198.51.100.0/24 nexthop via 192.0.2.2 nexthop via 192.0.2.4",
			"198.51.100.0/24 table 254 type 1 nexthops HASH"},
		{"route add 198.51.100.0/24 tos 0x10 dev a",
			"198.51.100.0/24 dev a table 254 type 1 scope 253 tos 16"},
		{"-6 route replace 2001:db8:1::/64 dev a mtu 1300",
			"2001:db8:1::/64 dev a table 254 metric 1024 type 1 mtu 1300"},
		{
			"route change local 192.0.2.1 dev a table local proto kernel scope host src " +
				"192.0.2.1 window 1000",
			"192.0.2.1/32 dev a src 192.0.2.1 table 255 type 2 scope 254 window 1000"},
		{"route add 192.0.2.9 dev a table local", "192.0.2.9/32 dev a table 255 type 1 scope 253"},
	} {
		before := routesNow(t)
		ip(t, c.change)
		now := routesNow(t)
		if now == before || !testgolden.HasLine(hash.ReplaceAllString(now, "HASH"), c.shows) {
			t.Errorf("after %q there is no line %q in\n%s", c.change, c.shows, now)
		}
	}
}

func TestPoliciesHaveAllAttributes(t *testing.T) {
	pair(t)
	seen := map[string]string{}
	for _, c := range []struct{ rule, shows string }{
		{"from 192.0.2.0/24 table 9", "ip rule 7: from 192.0.2.0/24 to all table 9 HASH"},
		{"to 192.0.2.1 table 9", "ip rule 7: from all to 192.0.2.1/32 table 9 HASH"},
		{"table 9", "ip rule 7: from all to all table 9 HASH"},
		{"not table 9", "ip rule 7: from all to all table 9 HASH"},
		{"fwmark 1 table 9", "ip rule 7: from all to all table 9 HASH"},
		{"fwmark 2 table 9", "ip rule 7: from all to all table 9 HASH"},
		{"iif a table 9", "ip rule 7: from all to all table 9 HASH"},
		{"l3mdev", "ip rule 7: from all to all table 0 HASH"},
		{"prohibit", "ip rule 7: from all to all table 0 HASH"},
		{"goto 32766", "ip rule 7: from all to all table 0 HASH"},
	} {
		ip(t, "rule add pref 7 "+c.rule)
		got, err := Policies()
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := seen[got]; ok {
			t.Errorf("%q is as %q:\n%s", c.rule, before, got)
		}
		if all := strings.Split(hash.ReplaceAllString(got, "HASH"), ", "); !slices.Contains(all,
			c.shows) {
			t.Errorf("%q is not among %q", c.shows, all)
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
	const want = "192.0.2.0/24 dev a src 192.0.2.1 table 254 type 1 scope 253 encap bpf by HASH"
	if now := routesNow(t); now == before || !testgolden.HasLine(hash.ReplaceAllString(now, "HASH"),
		want) {
		t.Errorf("there is no line %q in\n%s", want, now)
	}
}
