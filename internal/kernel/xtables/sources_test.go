package xtables

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestSources(t *testing.T) {
	iprange := func(first, last string, flags byte) []byte {
		b := make([]byte, 68)
		for i, s := range []string{first, last} {
			copy(b[16*i:], netip.MustParseAddr(s).AsSlice())
			copy(b[32+16*i:], netip.MustParseAddr(s).AsSlice())
		}
		b[64] = flags
		return b
	}
	physdev := append(append([]byte("veth1"), make([]byte, 27)...), append([]byte("veth2"),
		make([]byte, 29)...)...)
	for name, c := range map[string]struct {
		match string
		data  []byte
		has   []string // addresses in their networks, and names
		not   []string
	}{
		"sources": {"iprange", iprange("172.17.0.4", "172.17.0.6", 1),
			[]string{"172.17.0.4/16", "172.17.0.5/16", "172.17.0.6/16"},
			[]string{"172.17.0.3/16", "172.17.0.7/16", "::5/64"}},
		"no sources": {"iprange", iprange("172.17.0.4", "172.17.0.6", 2), nil,
			[]string{"172.17.0.4/16", "172.17.0.5/16"}},
		"IPv6": {"iprange", iprange("fd00::4", "fd00::6", 1), []string{"fd00::5/64"},
			[]string{"fd00::7/64", "172.17.0.5/16"}},
		"the whole network": {"iprange", iprange("172.17.0.0", "172.17.255.255", 1), nil,
			[]string{"172.17.0.5/16"}},
		"a port":     {"physdev", physdev, []string{"veth1"}, []string{"veth2", "veth"}},
		"an address": {"mac", []byte("abcdef\x00\x00\x00\x00\x00\x00"), []string{"abcdef"}, []string{"abcde"}},
	} {
		var s Sources
		s.Match(Source, c.match, c.data)
		has := func(x string) bool {
			p, err := netip.ParsePrefix(x)
			return err == nil && s.Has(p) || err != nil && s.HasName([]byte(x))
		}
		for _, x := range slices.Concat(c.has, c.not) {
			if has(x) != slices.Contains(c.has, x) {
				t.Errorf("%s: %s: %v", name, x, has(x))
			}
		}
	}
}

func TestSetsOfSources(t *testing.T) {
	old := make([]byte, 32) // of revision 0
	old[0], old[28], old[29] = 6, 1, 2
	all := [][]byte{{3, 0, 1, 2, 0, 0, 0, 0}, // src
		{4, 0, 1, 1, 0, 0, 0, 0}, // ! dst
		{5, 0, 2, 4, 0, 0, 0, 0}, // dst,src
		old}
	for of, want := range []map[uint16]byte{{3: 2, 5: 4, 6: 2}, {4: 2, 5: 2}} {
		var s Sources
		for _, data := range all {
			s.Match(End(of), "set", data)
		}
		if !maps.Equal(s.Sets, want) {
			t.Errorf("end %d: %v, want %v", of, s.Sets, want)
		}
	}
}

// matchData returns numbers and the bytes of addresses and names, one after the other.
func matchData(parts ...any) (out []byte) {
	for _, x := range parts {
		switch x := x.(type) {
		case int:
			out = append(out, byte(x))
		case uint16:
			out = binary.NativeEndian.AppendUint16(out, x)
		case string:
			if a, err := netip.ParseAddr(x); err == nil {
				out = append(out, a.AsSlice()...)
			} else {
				out = append(append(out, x...), make([]byte, 32-len(x))...)
			}
		}
	}
	return out
}

// Each match of both ends compares one address or name with the source, one with the destination.
func TestMatchesOfEnds(t *testing.T) {
	const all6 = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
	const no6, all4, no4 = "::", "255.255.255.255", "0.0.0.0"
	for name, c := range map[string]struct {
		data []byte
		ends [2]string
	}{
		"physdev": {matchData("veth1", "veth2", 0, 3), [2]string{"veth1", "veth2"}},
		"iprange": {matchData("fd00::4", "fd00::4", "fd00::6", "fd00::6", 3, 0, 0, 0),
			[2]string{"fd00::4/64", "fd00::6/64"}},
		"ip": {matchData("172.17.0.4", "172.17.0.6", all4, all4, 0, 0, 3, 0),
			[2]string{"172.17.0.4/16", "172.17.0.6/16"}},
		"ip6": {matchData("fd00::4", "fd00::6", all6, all6, 0, 0, 3, 0),
			[2]string{"fd00::4/64", "fd00::6/64"}},
		"arp": {matchData(uint16(0), uint16(0), uint16(0), uint16(0), "172.17.0.4", all4, "172.17.0.6",
			all4), [2]string{"172.17.0.4/16", "172.17.0.6/16"}},
		"conntrack": {matchData("fd00::4", all6, no6, no6, no6, no6, no6, no6),
			[2]string{"fd00::4/64", ""}},
		"conntrack, replies": {matchData(no6, no6, no6, no6, no6, no6, "172.17.0.4", no4, no4, no4, all4,
			no4, no4, no4), [2]string{"172.17.0.4/16", ""}},
	} {
		match, _, _ := strings.Cut(name, ",")
		for of := range c.ends {
			var s Sources
			s.Match(End(of), match, c.data)
			for i, x := range c.ends {
				p, err := netip.ParsePrefix(x)
				if has := err == nil && s.Has(p) || s.HasName([]byte(x)); has != (x != "" && i == of) {
					t.Errorf("%s: end %d, %q: %t", name, of, x, has)
				}
			}
		}
	}
}

func TestLimitsPorts(t *testing.T) {
	const most = uint16(0xffff)
	for _, c := range []struct {
		name  string
		ports []any
		want  bool
	}{
		{"tcp", []any{uint16(443), uint16(443), uint16(0), most}, false},
		{"tcp", []any{uint16(0), most, uint16(80), uint16(80)}, true},
		{"udp", []any{uint16(0), most, uint16(0), uint16(1023)}, true},
		{"udplite", []any{uint16(0), most, uint16(1), most}, true},
		{"sctp", []any{uint16(80), uint16(80), uint16(0), most}, true},
		{"dccp", []any{uint16(0), most, uint16(80), uint16(80)}, false},
		{"multiport", []any{0, 1}, false},
		{"multiport", []any{1, 1}, true},
		{"multiport", []any{2, 1}, false},
		{"mac", []any{uint16(0), most, uint16(80), uint16(80)}, false},
		{"tcp", nil, false},
	} {
		if got := LimitsPorts(c.name, matchData(c.ports...)); got != c.want {
			t.Errorf("%s %v: %t", c.name, c.ports, got)
		}
	}
}

// The index of the second set of struct xt_set_info_target_v0 … _v3 is behind all of the first set.
func TestFilled(t *testing.T) {
	for revision, size := range []int{32, 4, 4, 4} {
		data := make([]byte, 2*size+8)
		binary.NativeEndian.PutUint16(data, 7)
		binary.NativeEndian.PutUint16(data[size:], 9)
		if got := Filled("SET", byte(revision), data); !slices.Equal(got, []uint16{7, 9}) {
			t.Errorf("revision %d: %v", revision, got)
		}
	}
}

// A rule compares answers' destination if it does something to all that goes there.
func TestSourcesOfRules(t *testing.T) {
	enter(t)
	const net4, net6 = "172.17.0.3", "fd00::3"
	for rule, want := range map[string]bool{
		"-s CONTAINER -j DROP":                                  true,
		"-d CONTAINER -j DROP":                                  true,
		"-d CONTAINER -j ACCEPT":                                true,
		"-d CONTAINER -j MINE":                                  true,
		"-d CONTAINER -p tcp --sport 443 -j DROP":               true,
		"-m iprange --dst-range CONTAINER-CONTAINER -j X":       true,
		"-o veth3 -j DROP":                                      true,
		"-d CONTAINER -p tcp --dport 80 -j DROP":                false,
		"-d CONTAINER -p tcp -m multiport --dports 1,2 -j DROP": false,
		"-d CONTAINER ! -i docker0 -j DROP":                     false,
		"-d CONTAINER":                                          false,
		"-d CONTAINER -j LOG":                                   false,
		"-o docker0 -j DROP":                                    false,
	} {
		for program, at := range map[string]string{"iptables-legacy-restore": net4,
			"ip6tables-legacy-restore": net6} {
			runOn(t, "*filter\n:X - [0:0]\n:MINE - [0:0]\n-A FORWARD "+
				strings.ReplaceAll(rule, "CONTAINER", at)+"\n-A MINE -j DROP\nCOMMIT\n", program)
			saved, err := Save()
			if err != nil {
				t.Fatal(err)
			}
			var from Sources
			for _, table := range saved {
				if table.Six == (at == net6) {
					table.Sources(&from)
				}
			}
			a := netip.MustParseAddr(at)
			p := netip.PrefixFrom(a, a.BitLen()/2)
			if got := from.Has(p) || from.HasName([]byte("veth3")); got != want {
				t.Errorf("%s %s: %t", program, rule, got)
			}
		}
	}
}

func TestRedirects(t *testing.T) {
	enter(t)
	for rule, want := range map[string][]string{
		"POSTROUTING -j MASQUERADE":                             nil,
		"PREROUTING -j DNAT --to-destination 172.17.0.3":        {"", "tcp", "udp"},
		"PREROUTING -p tcp -j DNAT --to-destination 172.17.0.3": {"", "tcp"},
		"PREROUTING -p udp --dport 53 -j REDIRECT":              {"", "udp"},
		"OUTPUT ! -p tcp -j DNAT --to-destination 172.17.0.3":   {"", "tcp", "udp"},
	} {
		for program, at := range map[string]string{"iptables-legacy-restore": "172.17.0.3",
			"ip6tables-legacy-restore": "fd00::3"} {
			runOn(t, "*nat\n-A "+strings.ReplaceAll(rule, "172.17.0.3", at)+"\nCOMMIT\n", program)
			saved, err := Save()
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range saved {
				for _, proto := range []string{"", "tcp", "udp"} {
					if got := table.Redirects(proto); table.Name == "nat" && table.Six == (at == "fd00::3") &&
						got != slices.Contains(want, proto) {
						t.Errorf("%s %s: %q: %t", program, rule, proto, got)
					}
				}
			}
		}
	}
}
