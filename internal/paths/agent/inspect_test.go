package agent

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestInspect(t *testing.T) {
	s := newSite(t, silence)
	b := s.node(setup{id: "b"})
	inner, err := netns.New()
	check(t, err)
	t.Cleanup(func() { inner.Close() })
	tid, err := inner.TID()
	check(t, err)
	check(t, b.ns.Do(func() error {
		return errors.Join(link.AddVeth("v0", "c0", tid),
			link.AddAddr("v0", netip.MustParsePrefix("10.8.0.1/24")), link.Up("v0"))
	}))
	check(t, inner.Do(func() error {
		return errors.Join(link.Up("lo"), link.Up("c0"),
			run(
				"sh", "-ec",
				"for i in $(seq 200 250); do ip rule add priority $i table main; done"))
	}))
	all := Spot{Namespace: "/proc/" + strconv.Itoa(tid) + "/ns/net", Where: "container"}
	shared := Spot{Where: "node b", Devices: []string{"v0"},
		To: []netip.Addr{netip.MustParseAddr("10.8.0.7")}}
	for _, c := range []struct {
		at       Spot
		ns       *netns.NS
		do, undo string
		want     sample.Difference // beginnings of its What and values; may be empty
		diverts  bool
	}{
		{all, inner, "tc qdisc add dev c0 root tbf rate 200mbit burst 32kb latency 50ms",
			"tc qdisc del dev c0 root",
			sample.Difference{What: "queueing discipline of c0", Was: "noqueue",
				Is: "tbf of 200 Mbit/s"}, false},
		{all, inner, "ip link set c0 mtu 600", "ip link set c0 mtu 1500",
			sample.Difference{What: "MTU of c0", Was: "1500", Is: "600"}, false},
		{all, inner,
			"tc qdisc add dev c0 clsact; tc filter add dev c0 ingress protocol all u32 match " +
				"u32 0 0 action mirred egress redirect dev lo", "tc qdisc del dev c0 clsact",
			sample.Difference{What: "tc filter of c0", Was: "none", Is: "ingress u32"}, true},
		{all, inner, "nft add table ip x", "nft delete table ip x",
			sample.Difference{What: "table ip x"}, false},
		{all, inner, "ip addr add 10.8.0.9/24 dev c0", "ip addr del 10.8.0.9/24 dev c0",
			sample.Difference{What: "IPv4 address of c0", Was: "none", Is: "10.8.0.9/24"}, false},
		// With many differences, not all are listed.
		{all, inner, "ip rule add priority 299 table main", "ip rule del priority 299",
			sample.Difference{What: "routing policy"}, false},
		{shared, b.ns, "ip link set v0 mtu 600", "ip link set v0 mtu 1500",
			sample.Difference{What: "MTU of v0", Was: "1500", Is: "600"}, false},
		{shared, b.ns,
			"nft add table netdev x; nft add chain netdev x y '{ type filter hook ingress " +
				"device v0 priority 0; }'", "nft delete table netdev x",
			sample.Difference{What: "chain netdev x y"}, true},
		{shared, b.ns, "ip route add 10.8.0.0/28 dev v0 initcwnd 99", "ip route del 10.8.0.0/28",
			sample.Difference{What: "route 10.8.0.0/28 dev v0", Is: "there"}, false},
		{shared, b.ns, "ip route add 10.99.0.0/16 dev v0", "ip route del 10.99.0.0/16",
			sample.Difference{}, false},
		{shared, b.ns, "ip addr add 10.98.0.1/24 dev v0", "ip addr del 10.98.0.1/24 dev v0",
			sample.Difference{}, false},
		{shared, b.ns, "ip link add other type bridge; nft add table ip x",
			"ip link del other; nft delete table ip x", sample.Difference{}, false},
	} {
		before := settings(t, b, c.at)
		check(t, path.Undiverted(before))
		check(t, c.ns.Do(func() error { return run("sh", "-ec", c.do) }))
		after := settings(t, b, c.at)
		d := path.Differences(before, after)
		found := slices.ContainsFunc(d, func(d sample.Difference) bool {
			return d.Where == c.at.Where && strings.HasPrefix(d.What, c.want.What) &&
				strings.HasPrefix(d.Was, c.want.Was) && strings.HasPrefix(d.Is, c.want.Is)
		})
		if none := c.want == (sample.Difference{}); !none && !found || none && len(d) > 0 {
			t.Errorf("%s: found %+v", c.do, d)
		}
		if diverts := path.Undiverted(after) != nil; diverts != c.diverts {
			t.Errorf("%s: it may divert: %t", c.do, diverts)
		}
		check(t, c.ns.Do(func() error { return run("sh", "-ec", c.undo) }))
	}
	for _, bad := range []Spot{{Namespace: "/nowhere", Where: "x"},
		{Where: strings.Repeat("x", maxLine)}} {
		if all, err := b.Inspect(bad); err == nil || len(all) > 0 ||
			!strings.HasPrefix(err.Error(), "node b: ") {
			t.Errorf("%d settings, %v", len(all), err)
		}
	}
	check(t, b.Err())
}

func settings(t *testing.T, b *node, at Spot) []path.Setting {
	t.Helper()
	all, err := b.Inspect(at)
	check(t, err)
	again, err := b.Inspect(at)
	check(t, err)
	if d := path.Differences(all, again); len(d) > 0 || len(all) == 0 {
		t.Fatalf("%d settings, and of themselves changed %+v", len(all), d)
	}
	return all
}

func TestBrief(t *testing.T) {
	long := strings.Repeat("é", maxText)
	if brief(long) != long {
		t.Error("it was shortened though it fits")
	}
	a, b := brief(long+"a"), brief(long+"b")
	if a == b || clean(a) != a || clean(b) != b || !strings.Contains(a, "(1001 bytes, checksum ") {
		t.Errorf("%s\n%s", a, b)
	}
}

func TestInspectWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, quick)
	b := s.node(setup{id: "b"})
	inspect := func(want string, most time.Duration) {
		t.Helper()
		began := time.Now()
		if all, err := b.Inspect(Spot{Where: "node b"}); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%d settings, %v", len(all), err)
		}
		if took := time.Since(began); took > most {
			t.Errorf("after %s", took)
		}
	}
	check(t, b.cmd.Process.Signal(syscall.SIGSTOP))
	inspect("node b: ", 4*readLimit)
	check(t, b.cmd.Process.Kill())
	<-b.Lost()
	inspect("node b left: ", readLimit/2)
}
