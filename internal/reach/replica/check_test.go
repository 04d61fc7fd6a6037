package replica

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

// Packets cross more devices than those that have their addresses.
func TestBeside(t *testing.T) {
	here := func(l link.Saved) link.Saved { l.ParentSpace = link.Here; return l }
	m := &Machine{Spaces: []Space{{Links: []link.Saved{
		here(link.Saved{Name: "eth0", Index: 2, Master: 4}),
		here(link.Saved{Name: "eth1", Index: 3, Master: 4}),
		here(link.Saved{Name: "bond0", Index: 4, Kind: "bond"}),
		here(link.Saved{Name: "bond0.10", Index: 5, Kind: "vlan", Parent: 4, Master: 6}),
		here(link.Saved{Name: "br0", Index: 6, Kind: "bridge", Master: 9}),
		{Name: "vweb", Index: 7, Kind: "veth", Parent: 2, ParentSpace: 1, Master: 6},
		here(link.Saved{Name: "eth2", Index: 8, Kind: "veth", Master: 6, Parent: 77}),
		here(link.Saved{Name: "fwln0", Index: 10, Kind: "veth", Master: 6, Parent: 11}),
		here(link.Saved{Name: "fwpr0", Index: 11, Kind: "veth", Parent: 10}),
		here(link.Saved{Name: "tap0", Index: 12, Kind: "tun", Master: 6}),
		here(link.Saved{Name: "vrf0", Index: 9, Kind: "vrf", Master: 6}), // no kernel has this circle
	}}, {Links: []link.Saved{{Name: "eth0", Index: 2, Kind: "veth", Parent: 7}}}}}
	for name, want := range map[string][]string{
		"br0":  {"vrf0", "bond0.10", "eth2", "bond0", "eth0", "eth1"},
		"vweb": {"br0", "vrf0"},
		"eth1": {"bond0"},
		"none": nil,
	} {
		if got := m.beside(0, name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
