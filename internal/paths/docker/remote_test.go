package docker

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func TestRemoteRefuses(t *testing.T) {
	four, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	for _, tt := range []struct {
		name string
		mode mode.Name
		from mode.Placement
		to   mode.Target
		addr netip.Addr
		want string // of the error; "": none
	}{
		{"host", mode.Host, mode.FromRemote, mode.ToAddress, four, ""},
		{"contained", mode.PublishDefault, mode.FromRemoteContainer, mode.ToAddress, four, ""},
		{"on-the-cards", mode.MacvlanBridge, mode.FromRemoteContainer, mode.ToContainer, four, ""},
		{"on-one-card", mode.IPvlanL2, mode.FromRemote, mode.ToContainer, four,
			"the containers of ipvlan-l2 have a network of their own on the wire, and " +
				"the other machine has no address in it"},
		{"both-here", mode.Host, mode.FromContainer, mode.ToLoopback, four, ""},
		{"outside", mode.Bridge, mode.FromContainer, mode.ToOutside, four, ""},
		{"outside-no-six", mode.Bridge, mode.FromContainer, mode.ToOutside6, four,
			"this machine has no IPv6 address on the wire to the other one"},
		{"outside-on-the-card", mode.MacvlanPrivate, mode.FromContainer, mode.ToOutside, four, ""},
		{"by-a-route", mode.Routed, mode.FromRemote, mode.ToContainer, four, ""},
		{"by-a-route-and-nat", mode.Routed, mode.FromRemoteContainer, mode.ToContainer, four,
			"the other machine's engine would rewrite what a container there sends, and " +
				"a routed path has no NAT"},
		{"no-route", mode.Bridge, mode.FromRemote, mode.ToContainer, four,
			"toll cannot measure mode bridge of a Docker Engine from another machine"},
		{"no-four", mode.Publish, mode.FromRemote, mode.ToAddress, six,
			"this machine has no IPv4 address on the wire to the other one"},
		{"no-six", mode.Publish, mode.FromRemote, mode.ToAddress6, four,
			"this machine has no IPv6 address on the wire to the other one"},
		{"six", mode.Publish, mode.FromRemote, mode.ToAddress6, six, ""},
		{"six-by-rules", mode.PublishNAT, mode.FromRemote, mode.ToAddress6, six, ""},
		{"six-by-proxy", mode.PublishProxy, mode.FromRemote, mode.ToAddress6, six, ""},
		{"six-by-a-route", mode.Routed, mode.FromRemote, mode.ToContainer6, six, ""},
		{"six-host", mode.Host, mode.FromRemoteContainer, mode.ToAddress6, six, ""},
		{"six-contained", mode.PublishNAT, mode.FromRemoteContainer, mode.ToAddress6, six,
			"toll gives the client's container on the other machine no IPv6"},
		{"four-by-proxy", mode.PublishProxy, mode.FromRemote, mode.ToAddress, four,
			"over IPv4, packets from another machine are handled by NAT, not by " +
				"docker-proxy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := remote(tt.addr).refuse(path.Spec{Mode: tt.mode, From: tt.from, To: tt.to})
			if (err == nil) != (tt.want == "") ||
				err != nil && (err.Error() != tt.want || !errors.Is(err, machine.ErrUnsupported)) {
				t.Errorf("%q, want %q", err, tt.want)
			}
		})
	}
}

func TestByRoute(t *testing.T) {
	for _, tt := range []struct {
		mode           mode.Name
		from           mode.Placement
		to             mode.Target
		needed, direct bool
	}{
		{mode.Routed, mode.FromRemote, mode.ToContainer, true, false},
		{mode.Routed, mode.FromContainer, mode.ToOutside, true, false},
		{mode.Routed, mode.FromHost, mode.ToContainer, false, false},
		{mode.MacvlanBridge, mode.FromContainer, mode.ToOutside6, true, true},
		{mode.MacvlanBridge, mode.FromRemoteContainer, mode.ToContainer, false, false},
		{mode.IPvlanL2, mode.FromContainer, mode.ToOutside, true, true},
		{mode.IPvlanL3S, mode.FromContainer, mode.ToOutside, true, false},
		{mode.Bridge, mode.FromContainer, mode.ToOutside, false, false},
	} {
		s := path.Spec{Mode: tt.mode, From: tt.from, To: tt.to}
		if needed, direct := ByRoute(s); needed != tt.needed || direct != tt.direct {
			t.Errorf("%s: %v, %v", s, needed, direct)
		}
	}
}

func remote(a netip.Addr) *Remote {
	if a.Is6() {
		return &Remote{Addr6: a}
	}
	return &Remote{Addr: a}
}

func TestOpposite(t *testing.T) {
	in := netip.MustParsePrefix("198.18.4.0/22")
	for a, want := range map[string]string{"198.18.4.2": "198.18.6.2",
		"198.18.5.255": "198.18.7.255"} {
		if got := opposite(in, netip.MustParseAddr(a)); got.String() != want || !in.Contains(got) {
			t.Errorf("%s: %s, want %s", a, got, want)
		}
	}
}
