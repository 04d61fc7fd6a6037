package swarm

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/moby/moby/api/types/network"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func device(name string, addrs ...string) agent.Interface {
	d := agent.Interface{Link: sample.Link{Name: name}}
	for _, a := range addrs {
		d.Addrs = append(d.Addrs, netip.MustParsePrefix(a))
	}
	return d
}

func TestLegsOfTheMesh(t *testing.T) {
	subnet := netip.MustParsePrefix("10.0.0.0/24")
	lo := device("lo", "127.0.0.1/8", "::1/128")
	for _, tt := range []struct {
		name         string
		devices      []agent.Interface
		inner, outer string
	}{
		{"as-docker-makes-it", []agent.Interface{
			lo, device("eth0", "10.0.0.2/24", "10.0.0.3/32"),
			device("eth1", "172.18.0.2/16", "fe80::1/64")},
			"eth0 10.0.0.2", "eth1 172.18.0.2"},
		{"service-first", []agent.Interface{device("eth1", "172.18.0.9/16"),
			device("eth0", "10.0.0.77/32", "10.0.0.2/24", "10.0.0.9/32"), lo},
			"eth0 10.0.0.2", "eth1 172.18.0.9"},
		{"no-bridge", []agent.Interface{lo, device("eth0", "10.0.0.2/24")}, "eth0 10.0.0.2", ""},
		{"no-mesh", []agent.Interface{lo, device("eth1", "172.18.0.2/16"),
			device("eth0", "10.0.0.3/32")}, "", "eth1 172.18.0.2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := func(b *box) string {
				if b == nil {
					return ""
				}
				return b.Device.Name + " " + b.Addr.String()
			}
			inner, outer := legsOf(tt.devices, subnet)
			if text(inner) != tt.inner || text(outer) != tt.outer {
				t.Errorf("got %q and %q, want %q and %q", text(inner), text(outer), tt.inner,
					tt.outer)
			}
		})
	}
}

func TestMeshIsTheIngressNetwork(t *testing.T) {
	named := func(name string, ingress bool) (n network.Summary) {
		n.ID, n.Name, n.Ingress = name, name, ingress
		return n
	}
	n, err := ingressOf([]network.Summary{named("ingress", false), named("of-our-own", true)})
	if err != nil || n.ID != "of-our-own" {
		t.Errorf("network %s, %v", n.ID, err)
	}
	var u *machine.UnsupportedError
	if _, err := ingressOf([]network.Summary{named("ingress", false)}); !errors.As(err, &u) ||
		u.Missing == "" || u.Remedy == "" {
		t.Errorf("no mesh: %v", err)
	}
}

func TestServicesShareTheMeshsPort(t *testing.T) {
	one := (&sandbox{node: "a", namespace: "/run/1-mesh"}).switched("veth0", "veth1").Counters()
	two := (&sandbox{node: "a", namespace: "/run/1-mesh"}).switched("veth0", "veth2").Counters()
	other := (&sandbox{node: "a", namespace: "/run/1-other"}).switched("veth0", "veth1").Counters()
	if one[0] == nil || one[0] == two[0] || one[1] != two[1] || one[1] == one[0] ||
		one[0] == other[0] || one[1] == other[1] {
		t.Errorf("%v, %v, %v", one, two, other)
	}
}
