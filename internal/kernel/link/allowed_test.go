package link

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// nest returns an attribute with others in it, as the kernel nests them.
func nest(kind uint16, in ...netlink.Attribute) netlink.Attribute {
	return netlink.Attribute{Type: kind | unix.NLA_F_NESTED, Data: encoded(in...)}
}

func encoded(list ...netlink.Attribute) []byte {
	b, err := netlink.MarshalAttributes(list)
	if err != nil {
		panic(err)
	}
	return b
}

// device returns the attributes of a WireGuard device that has one peer with the networks.
func deviceWith(networks ...netlink.Attribute) []byte {
	const index, publicKey, family = 1, 1, 1
	peer := nest(0, netlink.Attribute{Type: publicKey, Data: make([]byte, 32)},
		nest(wgPeerAllowed, networks...))
	return encoded(netlink.Attribute{Type: index, Data: []byte{4, 0, 0, 0}},
		nest(wgDevicePeers, peer, nest(1, netlink.Attribute{Type: family, Data: []byte{0, 0}})))
}

// allowed returns a network as the kernel describes it, with its family.
func allowed(address []byte, length ...byte) netlink.Attribute {
	const family = 1
	return nest(0, netlink.Attribute{Type: family, Data: []byte{unix.AF_INET, 0}},
		netlink.Attribute{Type: wgAllowedAddr, Data: address},
		netlink.Attribute{Type: wgAllowedLength, Data: length})
}

func TestAllowed(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.8.0.2"), netip.MustParseAddr("fd00::2")
	for name, c := range map[string]struct {
		networks []netlink.Attribute
		want     []string
	}{
		"none": {},
		"both families": {[]netlink.Attribute{allowed(v4.AsSlice(), 32), allowed(v6.AsSlice(), 128),
			allowed(make([]byte, 4), 0), allowed(make([]byte, 16), 0)},
			[]string{"10.8.0.2/32", "fd00::2/128", "0.0.0.0/0", "::/0"}},
		"too long": {[]netlink.Attribute{allowed(v4.AsSlice(), 33), allowed(v6.AsSlice(), 129),
			allowed(v4.AsSlice(), 255), allowed(v4.AsSlice(), 24)}, []string{"10.8.0.2/24"}},
		"no length": {[]netlink.Attribute{allowed(v4.AsSlice()),
			nest(0, netlink.Attribute{Type: wgAllowedAddr, Data: v6.AsSlice()})}, nil},
		"a length of four bytes": {[]netlink.Attribute{allowed(v4.AsSlice(), 24, 0, 0, 0)}, nil},
		"no address": {[]netlink.Attribute{nest(0, netlink.Attribute{Type: wgAllowedLength,
			Data: []byte{24}})}, nil},
		"addresses cut short": {[]netlink.Attribute{allowed(v4.AsSlice()[:3], 24),
			allowed(v6.AsSlice()[:15], 64), allowed(nil, 0)}, nil},
	} {
		var got []netip.Prefix
		err := allowedIn(deviceWith(c.networks...), &got)
		var text []string
		for _, p := range got {
			text = append(text, p.String())
		}
		if err != nil || !slices.Equal(text, c.want) {
			t.Errorf("%s: %q, %v, want %q", name, text, err, c.want)
		}
	}
}

// Networks of several messages come one after the other. What is damaged is an error.
func TestAllowedOfSeveralMessages(t *testing.T) {
	v4, v6 := []byte{10, 8, 0, 2}, netip.MustParseAddr("fd00::2").AsSlice()
	var got []netip.Prefix
	for _, b := range [][]byte{deviceWith(allowed(v4, 32)), deviceWith(allowed(v6, 64))} {
		if err := allowedIn(b, &got); err != nil {
			t.Fatal(err)
		}
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.8.0.2/32"), netip.MustParsePrefix("fd00::2/64")}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	whole := deviceWith(allowed(v4, 32))
	first := len(encoded(netlink.Attribute{Type: 1, Data: []byte{4, 0, 0, 0}}))
	for n := range len(whole) {
		if err := allowedIn(whole[:n], &got); err == nil && n != 0 && n != first {
			t.Errorf("no error for %d of %d bytes", n, len(whole))
		}
	}
}

func FuzzAllowed(f *testing.F) {
	whole := deviceWith(allowed([]byte{10, 8, 0, 2}, 32), allowed(make([]byte, 16), 0))
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte("\x05\x00\x08\x80\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var got []netip.Prefix
		_ = allowedIn(b, &got)
		for _, p := range got {
			if !p.IsValid() {
				t.Errorf("%v", p)
			}
		}
	})
}
