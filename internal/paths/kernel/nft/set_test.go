package nft

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/google/nftables"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

type walked struct {
	kind   firewall.Kind
	hook   firewall.Hook
	p      firewall.Packet
	want   firewall.Verdict
	to     string
	where  string
	unread int
}

func walkAll(t *testing.T, listing string, cases map[string]walked) {
	t.Helper()
	inSpace(t, func() error {
		err := program("nft", listing, "-f", "-")
		if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
			t.Skip(err)
		}
		if err != nil {
			return err
		}
		r, err := Read()
		if err != nil {
			return err
		}
		for name, c := range cases {
			got := r.Walk(c.kind, c.hook, c.p)
			to := ""
			if got.To.IsValid() {
				to = got.To.String()
			}
			if got.Verdict != c.want || to != c.to || got.Where != c.where ||
				len(got.Unread) != c.unread {
				t.Errorf("%s: %+v", name, got)
			}
		}
		return nil
	})
}

// Docker Engine 29 wrote the rules for the containers of cmd/toll's TestPorts.
func TestReadDockersNftables(t *testing.T) {
	listing, err := os.ReadFile("testdata/docker-29.nft")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddr
	own, far := at("198.18.0.1"), at("198.18.0.2")
	own6, far6 := at("fd18::1"), at("fd18::2")
	const docker0, dual = "docker0", "br-cfb04c5781dd"
	const bridges = "docker-bridges "
	walkAll(t, string(listing), map[string]walked{
		"from outside": {kind: firewall.NAT, hook: firewall.Prerouting,
			p: firewall.Packet{Proto: "tcp", Src: far, Dst: own, Port: 8080, In: "eth0",
				DstLocal: true},
			want: firewall.DNAT, to: "172.17.0.2:80", where: bridges + "nat-prerouting-and-output"},
		"from a container": {kind: firewall.NAT, hook: firewall.Prerouting,
			p: firewall.Packet{Proto: "tcp", Src: at("172.17.0.9"), Dst: own, Port: 8080,
				In: docker0, DstLocal: true},
			want: firewall.Accept},
		"from this machine": {kind: firewall.NAT, hook: firewall.Output,
			p: firewall.Packet{Proto: "tcp", Src: own, Dst: own, Port: 8080, Out: "lo",
				SrcLocal: true, DstLocal: true},
			want: firewall.DNAT, to: "172.17.0.2:80", where: bridges + "nat-prerouting-and-output"},
		"from 127.0.0.1": {kind: firewall.NAT, hook: firewall.Output,
			p: firewall.Packet{Proto: "tcp", Src: at("127.0.0.1"), Dst: at("127.0.0.1"),
				Port: 8080, Out: "lo", SrcLocal: true, DstLocal: true},
			want: firewall.Accept},
		"by IPv6": {kind: firewall.NAT, hook: firewall.Prerouting,
			p: firewall.Packet{Proto: "tcp", Src: far6, Dst: own6, Port: 8088, In: "eth0",
				DstLocal: true},
			want: firewall.DNAT, to: "[fd19::2]:80", where: bridges + "nat-prerouting-and-output"},
		"on to the container": {kind: firewall.Filter, hook: firewall.Forward,
			p: firewall.Packet{Proto: "tcp", Src: far, Dst: at("172.17.0.2"), Port: 80,
				In: "eth0", Out: docker0},
			want: firewall.Accept},
		"to another port": {kind: firewall.Filter, hook: firewall.Forward,
			p: firewall.Packet{Proto: "tcp", Src: far, Dst: at("172.17.0.2"), Port: 82,
				In: "eth0", Out: docker0},
			want: firewall.Drop, where: bridges + "filter-forward-in__docker0"},
		"to another port by IPv6": {kind: firewall.Filter, hook: firewall.Forward,
			p: firewall.Packet{Proto: "tcp", Src: far6, Dst: at("fd19::2"), Port: 82, In: "eth0",
				Out: dual},
			want: firewall.Drop, where: bridges + "filter-forward-in__" + dual},
		"within a network": {kind: firewall.Filter, hook: firewall.Forward,
			p: firewall.Packet{Proto: "tcp", Src: at("172.17.0.9"), Dst: at("172.17.0.2"),
				Port: 82, In: docker0, Out: docker0},
			want: firewall.Accept},
		"through the machine": {kind: firewall.Filter, hook: firewall.Forward,
			p: firewall.Packet{Proto: "tcp", Src: far, Dst: at("192.0.2.1"), Port: 82,
				In: "eth0", Out: "eth1"},
			want: firewall.Accept},
		"straight to the container": {kind: firewall.Filter, hook: firewall.Prerouting,
			p: firewall.Packet{Proto: "tcp", Src: far, Dst: at("172.17.0.2"), Port: 80,
				In: "eth0"},
			want: firewall.Drop, where: bridges + "raw-PREROUTING"},
		"out to the world": {kind: firewall.NAT, hook: firewall.Postrouting,
			p: firewall.Packet{Proto: "tcp", Src: at("172.17.0.2"), Dst: far, Port: 443,
				In: docker0, Out: "eth0"},
			want: firewall.Masquerade, where: bridges + "nat-postrouting-out__docker0"},
		"out of nowhere": {kind: firewall.NAT, hook: firewall.Postrouting,
			p: firewall.Packet{Proto: "tcp", Src: far, Dst: at("172.17.0.2"), Port: 80,
				In: "eth0", Out: docker0},
			want: firewall.Accept},
	})
}

func TestReadSets(t *testing.T) {
	at := netip.MustParseAddr
	in := func(p firewall.Packet, v firewall.Verdict, where string, unread int) walked {
		if p.Proto == "" {
			p.Proto = "tcp"
		}
		if !p.Dst.IsValid() {
			p.Dst = at("198.18.0.1")
		}
		if !p.Src.IsValid() {
			p.Src = at("203.0.113.9")
		}
		if p.Dst.Is6() {
			p.Src = at("2001:db8::1")
		}
		return walked{kind: firewall.Filter, hook: firewall.Input, p: p, want: v, where: where,
			unread: unread}
	}
	walkAll(t, `table inet mine {
	set friends { type ipv4_addr; flags interval; elements = { 192.0.2.0/25, 192.0.2.128/25, 203.0.113.7 } }
	set doors { type ipv4_addr . inet_service; elements = { 198.18.0.1 . 22, 198.18.0.3 . 23 } }
	set wide { type inet_proto . inet_service; flags interval; elements = { tcp . 5000-5999, udp . 53 } }
	set nobody { type ipv4_addr; }
	map verdicts { type inet_service : verdict; flags interval; elements = { 80 : accept, 1000-2000 : jump deep, 65000-65535 : drop } }
	chain deep { udp dport 1000-2000 accept
		tcp dport { 1500, 1501 } drop
	}
	chain c {
		type filter hook input priority 0; policy accept;
		ct state vmap { established : accept, related : accept, invalid : drop }
		iifname { "eth0", "eth1" } ip6 daddr fd18::5 drop
		meta l4proto { icmp, icmpv6 } drop
		ip saddr @nobody drop
		ip daddr . tcp dport @doors drop
		meta l4proto . th dport @wide drop
		iifname "wg*" ip saddr != { 192.0.2.5, 192.0.2.6 } drop
		iifname "eth9" ip saddr @friends accept
		iifname "eth9" tcp dport 99 drop
		tcp dport vmap @verdicts
		meta mark 7 tcp dport 77 drop
	}
}
`, map[string]walked{
		"known to none": in(firewall.Packet{In: "eth0", Port: 3}, firewall.Accept, "", 0),
		"device and address": in(firewall.Packet{In: "eth1", Port: 3, Dst: at("fd18::5")},
			firewall.Drop, "mine c", 0),
		"another device": in(firewall.Packet{In: "eth10", Port: 3, Dst: at("fd18::5")},
			firewall.Accept, "", 0),
		"protocol": in(firewall.Packet{In: "eth0", Proto: "icmp"}, firewall.Drop,
			"mine c", 0),
		"pair": in(firewall.Packet{In: "eth0", Port: 22}, firewall.Drop, "mine c",
			0),
		"half of a pair": in(firewall.Packet{In: "eth0", Port: 23}, firewall.Accept, "", 0),
		"pair of ranges": in(firewall.Packet{In: "eth0", Port: 5999}, firewall.Drop,
			"mine c", 0),
		"beside the range": in(firewall.Packet{In: "eth0", Port: 6000}, firewall.Accept, "",
			0),
		"the range of another": in(firewall.Packet{In: "eth0", Proto: "udp", Port: 5999},
			firewall.Accept, "", 0),
		"not in the set": in(firewall.Packet{In: "wg0", Port: 3}, firewall.Drop, "mine c",
			0),
		"in the set": in(firewall.Packet{In: "wg0", Port: 3, Src: at("192.0.2.6")},
			firewall.Accept, "", 0),
		"in an interval": in(firewall.Packet{In: "eth9", Port: 99, Src: at("192.0.2.255")},
			firewall.Accept, "", 0),
		"beyond the interval": in(firewall.Packet{In: "eth9", Port: 99, Src: at("192.0.3.0")},
			firewall.Drop, "mine c", 0),
		"a single one": in(firewall.Packet{In: "eth9", Port: 99, Src: at("203.0.113.7")},
			firewall.Accept, "", 0),
		"verdict": in(firewall.Packet{In: "eth0", Port: 65535}, firewall.Drop,
			"mine c", 0),
		"verdict of one": in(firewall.Packet{In: "eth0", Port: 80}, firewall.Accept, "", 0),
		"jump": in(firewall.Packet{In: "eth0", Port: 1500}, firewall.Drop,
			"mine deep", 0),
		"jump, and back": in(firewall.Packet{In: "eth0", Port: 1502}, firewall.Accept, "",
			0),
		"no jump for UDP": in(firewall.Packet{In: "eth0", Proto: "udp", Port: 1500},
			firewall.Accept, "", 0),
		"a mark is not guessed": in(firewall.Packet{In: "eth0", Port: 77}, firewall.Accept, "", 1),
	})
}

func FuzzElements(f *testing.F) {
	f.Add([]byte{198, 18, 0, 1, 0, 22, 0, 0}, []byte{}, true, false,
		[]byte{8, 0, 1, 0, 0xff, 0xff, 0xff, 0xfd, 6, 0, 2, 0, 'c', 0})
	f.Add([]byte("0000"), []byte{}, false, false, []byte("\x06\x000000"))
	f.Add([]byte{0, 0, 0, 0}, []byte{1, 2, 3, 4}, true, true, []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte, interval, ends bool, val []byte) {
		s := &set{interval: interval, verdicts: len(val) > 0,
			elements: []nftables.SetElement{{Key: a, Val: val},
				{Key: b, KeyEnd: a, IntervalEnd: ends}}}
		r := &reader{regs: map[uint32]field{8: dstAddr, 9: dport}, size: map[uint32]int{8: 4}}
		_, widths, ok := r.fields(1, len(a))
		if !ok {
			widths = []int{16}
		}
		out, ok := elements(s, widths)
		if !ok {
			return
		}
		for _, e := range out {
			for i, k := range e.Key {
				if len(k.Low) != widths[i] || len(k.High) != widths[i] {
					t.Errorf("%+v of %v", e, widths)
				}
			}
		}
	})
}
