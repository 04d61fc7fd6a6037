package docker

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/firewall"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
)

// Docker Engine 29.8's rules for a published port, a link and their networks.
func TestFindNative(t *testing.T) {
	const bridge = "br-0123456789ab"
	server, client := netip.MustParsePrefix("172.18.0.2/32"), netip.MustParsePrefix("172.18.0.3/32")
	notIn := firewall.Device{Name: bridge, Not: true}
	dnat := func(port uint16) firewall.Rule {
		return firewall.Rule{In: notIn, Proto: "tcp", Ports: firewall.Ports{Low: port, High: port},
			Verdict: firewall.DNAT, To: netip.MustParseAddrPort("172.18.0.2:5201")}
	}
	rules := []nft.Counted{
		{Chain: "nat-OUTPUT", Handle: 1, Counts: true,
			Rule: firewall.Rule{DstLocal: firewall.Own, Verdict: firewall.Jump,
				Chain: "nat-prerouting-and-output"}},
		{Chain: "nat-prerouting-and-output", Handle: 2, Counts: true, Rule: dnat(4322)},
		{Chain: "nat-prerouting-and-output", Handle: 3, Counts: true, Rule: dnat(4321)},
		{Chain: "nat-postrouting-in__docker0", Handle: 4, Counts: true,
			Rule: firewall.Rule{SrcLocal: firewall.Own, Verdict: firewall.Masquerade}},
		{Chain: "nat-postrouting-in__" + bridge, Handle: 5, Counts: true,
			Rule: firewall.Rule{SrcLocal: firewall.Own, Verdict: firewall.Masquerade}},
		{Chain: "nat-postrouting-out__" + bridge, Handle: 6, Counts: true,
			Rule: firewall.Rule{Out: notIn, Src: firewall.Net{
				Prefix: netip.MustParsePrefix("172.18.0.0/16")}, Verdict: firewall.Masquerade}},
		{Chain: "filter-forward-in__" + bridge, Handle: 7, Counts: true,
			Rule: firewall.Rule{Dst: firewall.Net{Prefix: server}, Proto: "tcp",
				Ports: firewall.Ports{Low: 5201, High: 5201}, Verdict: firewall.Accept}},
		{Chain: "filter-forward-in__" + bridge, Handle: 8, Counts: true,
			Rule: firewall.Rule{Src: firewall.Net{Prefix: client},
				Dst: firewall.Net{Prefix: server}, Proto: "tcp",
				Ports: firewall.Ports{Low: 5201, High: 5201}, Verdict: firewall.Accept}},
		{Chain: "nat-prerouting-and-output", Handle: 9, Rule: dnat(4323)},
	}
	for _, c := range []struct {
		table, words string
		want         uint64 // handle; 0: none
	}{
		{"nat", "--dport 4321 -j DNAT --to-destination 172.18.0.2:5201", 3},
		{"nat", "--dport 4321 -j DNAT", 3},
		{"nat", "--dport 4321 -j DNAT --to-destination 172.18.0.9:5201", 0},
		{"filter", "--dport 4321 -j DNAT", 0},
		{"nat", "--dport 4323 -j DNAT", 0}, // has no counter
		{"nat", "-o " + bridge + " --src-type LOCAL -j MASQUERADE", 5},
		{"nat", "-s 172.18.0.0/16 ! -o " + bridge + " -j MASQUERADE", 6},
		{"nat", "-s 172.19.0.0/16 ! -o " + bridge + " -j MASQUERADE", 0},
		{"filter", "-s 172.18.0.3/32 -d 172.18.0.2/32 --dport 5201 -j ACCEPT", 8},
		{"filter", "-s 172.18.0.4/32 -d 172.18.0.2/32 --dport 5201 -j ACCEPT", 0},
	} {
		got, _ := findNative(rules, c.table, firewall.ParseRule(strings.Fields(c.words)))
		if got.Handle != c.want {
			t.Errorf("%s %s: %d, want %d", c.table, c.words, got.Handle, c.want)
		}
	}
}

// A rewritten chain restarts at zero.
func TestTally(t *testing.T) {
	var x tally
	for _, c := range []struct{ handle, packets, want uint64 }{{7, 3, 3}, {7, 5, 5}, {9, 0, 5},
		{9, 2, 7}, {12, 2, 9}} {
		if got := x.add(nft.Counted{Handle: c.handle, Packets: c.packets}); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
