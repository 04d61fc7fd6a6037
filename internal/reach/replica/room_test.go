package replica

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

func TestMakeRoomFollowsIndexes(t *testing.T) {
	number := func(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
	route := append(make([]byte, unix.SizeofRtMsg), 8, 0, unix.RTA_OIF, 0)
	m := &Machine{Spaces: []Space{
		{Links: []link.Saved{{Name: "lo", Index: 1, ParentSpace: link.Here},
			{Name: "eth0", Index: 2, Master: 4, ParentSpace: link.Elsewhere},
			{Name: "eth0.5", Index: 9, Parent: 2, ParentSpace: link.Here},
			{Name: "tunl0", Index: 5, ParentSpace: link.Here},
			{Name: "br0", Index: 4, ParentSpace: link.Here}},
			Addresses: []raw.Message{
				{Type: unix.RTM_NEWADDR, Data: append([]byte{2, 24, 0, 0}, number(2)...)},
				{Type: unix.RTM_NEWADDR, Data: append([]byte{2, 24, 0, 0}, number(5)...)}},
			Routes: []raw.Message{{Type: unix.RTM_NEWROUTE, Data: append(route, number(2)...)}},
			Nft: nft.Saved{Messages: []raw.Message{
				{Data: []byte("meta\x00\x08\x00\x02\x00\x00\x00\x00\x04")}}}},
		{Links: []link.Saved{{Name: "eth0", Index: 7, Parent: 2, ParentSpace: 0}}},
	}}
	lacks := m.MakeRoom([]link.Saved{{Name: "lo", Index: 1}, {Name: "tunl0", Index: 2},
		{Name: "sit0", Index: 3}})
	type place struct{ Index, Master, Parent int }
	got := map[string]place{}
	for i, s := range m.Spaces {
		for _, l := range s.Links {
			got[string(rune('0'+i))+l.Name] = place{l.Index, l.Master, l.Parent}
			if want := l.Name == "lo" || l.Name == "tunl0"; l.There != want {
				t.Errorf("%s: There is %t", l.Name, l.There)
			}
		}
	}
	want := map[string]place{"0lo": {1, 0, 0}, "0eth0": {10, 4, 0}, "0eth0.5": {9, 0, 10},
		"0tunl0": {2, 0, 0}, "0br0": {4, 0, 0}, "1eth0": {7, 0, 10}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var at []int
	for _, a := range m.Spaces[0].Addresses {
		at = append(at, int(binary.NativeEndian.Uint32(a.Data[4:])))
	}
	for _, h := range link.ParseHops(m.Spaces[0].Routes[0]) {
		at = append(at, h.Index)
	}
	if diff := cmp.Diff([]int{10, 2, 10}, at); diff != "" {
		t.Errorf("addresses and routes (-want +got):\n%s", diff)
	}
	if len(lacks) != 2 || lacks[0].Device != "eth0" {
		t.Errorf("rules that compare indexes are not named: %v", lacks)
	}
}
