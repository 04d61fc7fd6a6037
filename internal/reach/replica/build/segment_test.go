package build

import (
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// bridgedVLAN is br0 with the port eth0, and VLAN 30 of br0.
func bridgedVLAN(filters bool, port []byte) *replica.Machine {
	br0 := link.Saved{Name: "br0", Index: 3, Kind: "bridge", Up: true, Lower: true,
		ParentSpace: link.Here}
	if filters {
		br0.Data = []byte{5, 0, 7, 0, 1, 0, 0, 0} // IFLA_BR_VLAN_FILTERING
	}
	address := func(index byte, a string) raw.Message {
		ip := netip.MustParseAddr(a).As4()
		return raw.Message{Type: 20, Data: append([]byte{2, 24, 0, 0, index, 0, 0, 0, // RTM_NEWADDR
			8, 0, 1, 0, ip[0], ip[1], ip[2], ip[3], 8, 0, 2, 0}, ip[:]...)}
	}
	return &replica.Machine{Spaces: []replica.Space{{
		Links: []link.Saved{
			{Name: "eth0", Index: 2, Master: 3, Up: true, Lower: true, ParentSpace: link.Here, VLANs: port},
			br0,
			{Name: "br0.30", Index: 4, Kind: "vlan", Parent: 3, Up: true, Lower: true,
				ParentSpace: link.Here, Data: []byte{6, 0, 1, 0, 30, 0, 0, 0}}}, // IFLA_VLAN_ID
		Addresses: []raw.Message{address(3, "192.0.2.10"), address(4, "10.30.0.1")}}}}
}

// A card carries the VLAN of a bridge tagged, so it is another network, or untagged, or not at all.
// What commands change does not alter that.
func TestBridgedVLANs(t *testing.T) {
	const cable, own, none = "the card's", "its own", ""
	tagged, untagged := []byte{8, 0, 2, 0, 0, 0, 30, 0}, []byte{8, 0, 2, 0, 6, 0, 30, 0}
	for _, c := range []struct {
		what    string
		filters bool
		port    []byte // IFLA_BRIDGE_VLAN_INFO: flags, VLAN
		want    string
	}{
		{"no filter", false, nil, own},
		{"tagged", true, tagged, own},
		{"untagged", true, untagged, cable},
		{"not carried", true, []byte{8, 0, 2, 0, 6, 0, 1, 0}, none},
	} {
		from := bridgedVLAN(c.filters, c.port)
		made := &machine{from: from, survey: surveyed(from)}
		for _, when := range []string{"first", "after a command"} {
			got := none
			vlan, card := made.survey.around(device{0, 4}), made.survey.around(device{0, 2})
			if vlan == card && vlan != nil {
				got = cable
			} else if vlan != nil {
				got = own
			}
			_, trunk := made.survey.trunks[device{0, 4}]
			if got != c.want || trunk != (got == own) || card == nil {
				t.Errorf("%s, %s: %q, with a trunk: %t, want %q", c.what, when, got, trunk, c.want)
			}
			if err := made.surveyAgain(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A container at a bridge that filters VLANs may be in one of its VLANs, whose network is not that
// of the bridge itself.
func TestResidents(t *testing.T) {
	for _, filters := range []bool{true, false} {
		from := bridgedVLAN(filters, []byte{8, 0, 2, 0, 0, 0, 30, 0})
		here := &from.Spaces[0]
		web := here.Addresses[1] // in the network of br0.30
		web.Data = append([]byte{}, web.Data...)
		web.Data[4], web.Data[15], web.Data[23] = 2, 50, 50
		here.Addresses = here.Addresses[1:]
		here.Links = append(here.Links, link.Saved{Name: "vweb", Index: 5, Kind: "veth", Master: 3,
			Up: true, Lower: true, Parent: 2, ParentSpace: 1})
		from.Spaces = append(from.Spaces, replica.Space{Addresses: []raw.Message{web},
			Links: []link.Saved{{Name: "eth0", Index: 2, Kind: "veth", Up: true, Lower: true, Parent: 5}}})
		s := surveyed(from)
		if own := s.ownAt(device{0, 3}); (len(own) == 0) != filters {
			t.Errorf("filters: %t: %v", filters, own)
		}
		if same := s.around(device{0, 4}) == s.around(device{0, 2}); same == filters {
			t.Errorf("filters: %t: one network: %t", filters, same)
		}
	}
}
