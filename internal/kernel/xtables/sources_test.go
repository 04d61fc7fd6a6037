package xtables

import (
	"encoding/binary"
	"net/netip"
	"slices"
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
		"destinations": {"iprange", iprange("172.17.0.4", "172.17.0.6", 2), nil,
			[]string{"172.17.0.4/16", "172.17.0.5/16"}},
		"IPv6": {"iprange", iprange("fd00::4", "fd00::6", 1), []string{"fd00::5/64"},
			[]string{"fd00::7/64", "172.17.0.5/16"}},
		"the whole network": {"iprange", iprange("172.17.0.0", "172.17.255.255", 1), nil,
			[]string{"172.17.0.5/16"}},
		"a port":     {"physdev", physdev, []string{"veth1"}, []string{"veth2", "veth"}},
		"an address": {"mac", []byte("abcdef\x00\x00\x00\x00\x00\x00"), []string{"abcdef"}, []string{"abcde"}},
	} {
		var s Sources
		s.Match(c.match, c.data)
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
	var s Sources
	s.Match("set", []byte{3, 0, 1, 2, 0, 0, 0, 0}) // src
	s.Match("set", []byte{4, 0, 1, 0, 0, 0, 0, 0}) // dst
	s.Match("set", []byte{5, 0, 2, 4, 0, 0, 0, 0}) // dst,src
	old := make([]byte, 32)                        // of revision 0
	old[0], old[28], old[29] = 6, 1, 2
	s.Match("set", old)
	if len(s.Sets) != 3 || s.Sets[3] != 2 || s.Sets[5] != 4 || s.Sets[6] != 2 {
		t.Errorf("%v", s.Sets)
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
