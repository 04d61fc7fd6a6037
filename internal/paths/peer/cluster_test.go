package peer

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func card(name string, up, uplink bool, addrs ...string) agent.Interface {
	d := agent.Interface{Link: sample.Link{Name: name}, Up: up, Uplink: uplink}
	for _, a := range addrs {
		d.Addrs = append(d.Addrs, netip.MustParsePrefix(a))
	}
	return d
}

func TestAddresses(t *testing.T) {
	devices := []agent.Interface{
		card("lo", true, false, "127.0.0.1/8", "::1/128"),
		card("eth0", true, true, "10.0.0.2/24", "2001:db8::2/64", "fe80::2/64"),
		card("eth1", true, false, "192.168.7.2/24"),
		card("eth2", false, false, "192.168.8.2/24"),
		card("docker0", true, false, "172.17.0.1/16"),
	}
	for _, tt := range []struct {
		name   string
		host   string
		there  string // where ssh reached it
		seen   string
		within string
		want   string
	}{
		{"where-ssh-reaches-it", "b", "192.168.7.2:22", "10.0.0.2:1", "",
			"192.168.7.2 10.0.0.2 2001:db8::2"},
		{"behind-nat", "b", "203.0.113.1:22", "", "", "10.0.0.2 2001:db8::2"},
		{"not-told", "b", "", "", "", "10.0.0.2 2001:db8::2"},
		{"this-machine", "localhost", "", "192.168.7.2:5000", "",
			"192.168.7.2 10.0.0.2 2001:db8::2"},
		{"in-a-network", "b", "10.0.0.2:22", "", "192.168.7.0/24", "192.168.7.2"},
		{"in-a-network-of-ipv6", "b", "10.0.0.2:22", "", "2001:db8::/32", "2001:db8::2"},
		{"in-one-that-is-down", "b", "10.0.0.2:22", "", "192.168.8.0/24", ""},
		{"no-loopback", "b", "127.0.0.1:22", "", "127.0.0.0/8", ""},
		{"no-link-local", "b", "[fe80::2]:22", "", "fe80::/10", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &member{host: Host{Name: tt.host}, devices: devices}
			if tt.there != "" {
				m.seen.There = netip.MustParseAddrPort(tt.there)
			}
			seen := []netip.Addr{{}} // of an unreachable machine
			if tt.seen != "" {
				seen = append(seen, netip.MustParseAddrPort(tt.seen).Addr())
			}
			var within netip.Prefix
			if tt.within != "" {
				within = netip.MustParsePrefix(tt.within)
			}
			var got []string
			for _, a := range m.addresses(seen, within) {
				got = append(got, a.String())
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("%q, want %q", s, tt.want)
			}
		})
	}
}

func TestNames(t *testing.T) {
	f := &fleet{cluster: &Cluster{}}
	for _, s := range []string{"a", "me@b:22", "c", "me@c:2222", "localhost", "root@localhost"} {
		h, err := ParseHost(s)
		if err != nil {
			t.Fatal(err)
		}
		if h.here() != (s == "localhost") {
			t.Errorf("%s is here: %v", s, h.here())
		}
		f.cluster.Hosts = append(f.cluster.Hosts, h)
	}
	f.name()
	var got []string
	for _, m := range f.members {
		got = append(got, m.name)
	}
	if want := []string{"a", "b", "c", "me@c:2222", "localhost", "root@localhost"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
