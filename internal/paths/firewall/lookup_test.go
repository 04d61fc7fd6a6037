package firewall

import (
	"net/netip"
	"testing"
)

func TestLookup(t *testing.T) {
	net := func(low, high string) Range { return Range{at(low).AsSlice(), at(high).AsSlice()} }
	port := func(low, high byte) Range { return Range{[]byte{0, low}, []byte{0, high}} }
	l := Lookup{Fields: []Field{DstAddr, DstPort}, Elements: []Element{
		{Key: []Range{net("192.0.2.0", "192.0.2.127"), port(80, 90)}},
		{Key: []Range{net("192.0.2.200", "192.0.2.200"), Only([]byte{0, 22})}},
		{Key: []Range{port(1, 255)}},
	}}
	for _, c := range []struct {
		to   string
		want bool
	}{
		{"192.0.2.0:80", true}, {"192.0.2.127:90", true}, {"192.0.2.127:91", false},
		{"192.0.2.128:80", false},
		{"192.0.2.200:22", true}, {"192.0.2.200:80", false}, {"[2001:db8::1]:80", false},
	} {
		to := netip.MustParseAddrPort(c.to)
		p := Packet{Proto: "tcp", Dst: to.Addr(), Port: to.Port()}
		if got := l.matches(&p); got != sure(c.want) {
			t.Errorf("%s: %+v", c.to, got)
		}
		not := l
		not.Not = true
		if got := not.matches(&p); got == sure(c.want) {
			t.Errorf("not %s: %+v", c.to, got)
		}
	}
}
