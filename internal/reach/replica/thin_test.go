package replica

import (
	"fmt"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

// Of many bridges those are copied that were named, then those with servers, then those with ports.
func TestThin(t *testing.T) {
	const many = maxBridges + 20
	name := func(i int) string { return fmt.Sprintf("br%d", i) }
	m := &Machine{First: []string{name(many - 1)}, Spaces: []Space{{}, {}, {}}}
	for i := range many {
		m.Spaces[0].Links = append(m.Spaces[0].Links, link.Saved{Name: name(i),
			Index: i + 1, Kind: "bridge", Up: true})
	}
	// container 1 serves at the last but one, container 2 is at the one before that
	for i, master := range []int{many - 1, many - 2} {
		m.Spaces[0].Links = append(m.Spaces[0].Links, link.Saved{Name: fmt.Sprintf("v%d", i), Kind: "veth",
			Index: 100 + i, Master: master, Parent: 2, ParentSpace: i + 1})
		m.Spaces[i+1].Links = []link.Saved{{Name: "eth0", Index: 2, Kind: "veth", Parent: 100 + i}}
	}
	sockets := []Socket{{Space: 1}}
	kinds := func(m *Machine) (bridges []string) {
		for _, l := range m.Spaces[0].Links {
			if l.Kind == "bridge" {
				bridges = append(bridges, l.Name)
			}
		}
		return bridges
	}
	thin, left := m.thin(sockets)
	got := kinds(thin)
	for _, i := range []int{many - 1, many - 2, many - 3, 0, maxBridges - 4} {
		if !slices.Contains(got, name(i)) {
			t.Errorf("without %s: %q", name(i), got)
		}
	}
	if len(got) != maxBridges || len(kinds(m)) != many || len(left.bridges) != 20 ||
		len(left.doubts[0]) != 20 || len(left.doubts[1])+len(left.doubts[2]) != 0 {
		t.Errorf("%q, %+v", got, left)
	}
	out := name(maxBridges)
	for _, from := range []Client{{Bridge: out}, {Card: out}} {
		if a, ok := left.failed(m, from); !ok || a.Outcomes[0].Got != Failed || a.Outcomes[0].Err == "" {
			t.Errorf("%+v: %+v, %v", from, a, ok)
		}
	}
	for _, from := range []Client{{}, {Bridge: name(0)}, {Bridge: "none"}, {Space: 1, Bridge: out}} {
		if _, ok := left.failed(m, from); ok {
			t.Errorf("%+v fails", from)
		}
	}
	// all the others are named: the containers' bridges lead nowhere
	for i := range maxBridges {
		m.First = append(m.First, name(i))
	}
	thin, left = m.thin(sockets)
	if len(left.doubts[1]) != 1 || len(left.doubts[2]) != 1 || thin.Spaces[0].Links[many].Master != 0 ||
		m.Spaces[0].Links[many].Master != many-1 {
		t.Errorf("%+v", left.doubts)
	}
	m.Spaces[0].Links = m.Spaces[0].Links[:maxBridges]
	if same, left := m.thin(sockets); same != m || len(left.lacks)+len(left.doubts) != 0 {
		t.Errorf("%+v", left)
	}
}
