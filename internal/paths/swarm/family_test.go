package swarm

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func TestOverIPv6(t *testing.T) {
	at := func(addrs string) *end {
		e := &end{Node: Node{Name: "n", Addr: netip.MustParseAddr("10.77.0.1")}}
		e.Card.Name = "eth0"
		for _, a := range strings.Fields(addrs) {
			e.Card.Addrs = append(e.Card.Addrs, netip.MustParsePrefix(a))
		}
		return e
	}
	for _, tt := range []struct{ name, server, client, want string }{
		{"one-network", "10.77.0.1/24 fe80::1/64 fd77::1/64", "10.77.0.2/24 fe80::2/64 fd77::2/64",
			"fd77::1 fd77::2"},
		{"the-common-one", "fd01::1/64 fd77::1/64", "fd02::2/64 fd77::2/64", "fd77::1 fd77::2"},
		{"link-local", "10.77.0.1/24 fe80::1/64", "10.77.0.2/24 fe80::2/64", ""},
		{"two-networks", "fd01::1/64", "fd02::2/64", ""},
		{"two-lengths", "fd01::1/64", "fd01::2/48", ""},
		{"single", "fd01::1/128", "fd01::1/128", ""},
		{"ipv4", "10.77.0.1/24", "10.77.0.2/24", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, client := at(tt.server), at(tt.client)
			err := overIPv6(server, client)
			switch {
			case tt.want == "":
				if !errors.Is(err, machine.ErrUnsupported) || server.Addr.Is6() || client.Addr.Is6() {
					t.Errorf("%v: %s, %s", err, server.Addr, client.Addr)
				}
			case err != nil || server.Addr.String()+" "+client.Addr.String() != tt.want:
				t.Errorf("%v: %s, %s", err, server.Addr, client.Addr)
			}
		})
	}
}

func TestRefuses6(t *testing.T) {
	for m, want := range map[mode.Name]bool{mode.Host: true, mode.PublishNAT: false,
		mode.PublishIngress: false} {
		if err := refuse6(path.Spec{Mode: m, From: mode.FromRemote, To: mode.ToAddress6}); (err == nil) != want {
			t.Errorf("%s: %v", m, err)
		}
	}
}
