package docker

import (
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func TestFreeIn(t *testing.T) {
	bench := netip.MustParsePrefix("198.18.0.0/15")
	for _, c := range []struct {
		name string
		used []netip.Prefix
		from int
		want string
	}{
		{"first", nil, 0, "198.18.0.0/22"},
		{"last", nil, 127, "198.19.252.0/22"},
		{"next", prefixes("198.18.4.0/24"), 1, "198.18.8.0/22"},
		{"around", prefixes("198.19.255.255/32"), 127, "198.18.0.0/22"},
		{"others", prefixes("192.0.2.0/24", "10.0.0.0/8", "::/0"), 5, "198.18.20.0/22"},
		{"half", prefixes("198.18.0.0/16"), 3, "198.19.0.0/22"},
		{"all", prefixes("198.16.0.0/12"), 3, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := freeIn(bench, c.used, func(n int) int {
				if n != 128 {
					t.Errorf("one of %d", n)
				}
				return c.from
			})
			if ok != (c.want != "") || ok && got.String() != c.want {
				t.Errorf("%v %v, want %q", got, ok, c.want)
			}
		})
	}
}

func TestTake(t *testing.T) {
	l := &lan{subnet: netip.MustParsePrefix("198.18.4.0/22")}
	seen := map[netip.Addr]bool{}
	for {
		a, err := l.take()
		if err != nil {
			break
		}
		if seen[a.Addr()] || !l.subnet.Contains(a.Addr()) || a.Bits() != 22 {
			t.Fatalf("%v", a)
		}
		seen[a.Addr()] = true
	}
	if len(seen) != 1022 || !seen[netip.MustParseAddr("198.18.4.1")] ||
		seen[netip.MustParseAddr("198.18.4.0")] || seen[netip.MustParseAddr("198.18.7.255")] {
		t.Errorf("%d addresses", len(seen))
	}
}

func TestOurs(t *testing.T) {
	at := netip.MustParseAddrPort
	s := siteOf("bridge")
	s.Servers = []*box{{addr: netip.MustParseAddr("172.18.0.2")}, {}}
	s.path.Clients[0].Dial, s.path.Second = at("127.0.0.1:4321"), 4322
	ours := s.ours()
	for end, want := range map[string]bool{
		"172.18.0.2:1": true, "127.0.0.1:4321": true, "127.0.0.1:4322": true,
		"127.0.0.1:4323":  false,
		"127.0.0.2:4321":  false,
		"172.18.0.3:5201": false,
		"0.0.0.0:0":       false,
	} {
		if ours(at(end)) != want {
			t.Errorf("%s: %v", end, !want)
		}
	}
	shared := siteOf("shared") // its loopback device is not the machine's
	shared.path.Clients[0].Dial = at("127.0.0.1:5201")
	if shared.ours()(at("127.0.0.1:5201")) {
		t.Error("a port of the machine's is picked that is dialled in a container")
	}
}

func siteOf(m mode.Name) *site {
	return &site{path: &path.Path{Spec: path.Spec{Mode: m}, Clients: make([]path.Client, 1)}}
}
