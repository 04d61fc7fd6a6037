package replica

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

// Limits for machines to copy. They are several times what a Kubernetes node with 250 pods has.
const (
	maxSpaces   = 1 << 9
	maxLinks    = 1 << 13
	maxMessages = 1 << 18
	maxSockets  = 1 << 14
	maxDials    = 1 << 16
)

// MaxExplained is the most connections that are explained in a report, besides as many of servers'
// containers to themselves.
const MaxExplained = 256

func (m *Machine) check(sockets []Socket) error {
	if len(m.Spaces) == 0 {
		return errors.New("it has no network namespace")
	}
	links, messages := 0, 0
	for _, s := range m.Spaces {
		links += len(s.Links)
		messages += len(s.Addresses) + len(s.Nexthops) + len(s.Routes) + len(s.Policy) +
			len(s.Neighbours) + len(s.Nft.Messages) + len(s.Sets)
	}
	for _, n := range []struct {
		what    string
		is, max int
	}{
		{"network namespaces", len(m.Spaces), maxSpaces}, {"devices", links, maxLinks},
		{"addresses, routes and rules", messages, maxMessages},
		{"listening sockets", len(sockets), maxSockets},
	} {
		if n.is > n.max {
			return fmt.Errorf("%d %s are too many: at most %d", n.is, n.what, n.max)
		}
	}
	for _, s := range sockets {
		if s.Space < 0 || s.Space >= len(m.Spaces) || !s.Addr.IsValid() {
			return fmt.Errorf("no socket can be at %s in namespace %d", s.Addr, s.Space)
		}
	}
	return nil
}

// Other returns the other end of a veth, or the parent of a VLAN or macvlan, and the index of its
// namespace. It returns nil if that device is not in the Machine.
func (m *Machine) Other(space int, l link.Saved) (int, *link.Saved) {
	at := l.ParentSpace
	if at == link.Here {
		at = space
	}
	if l.Parent == 0 || at < 0 || at >= len(m.Spaces) {
		return 0, nil
	}
	for i := range m.Spaces[at].Links {
		if p := &m.Spaces[at].Links[i]; p.Index == l.Parent {
			return at, p
		}
	}
	return 0, nil
}

// ruledBelow returns the device below a VLAN of a VLAN that has rules, or "".
func (m *Machine) ruledBelow(space int, l link.Saved) string {
	at, below := m.Other(space, l)
	if l.Kind != "vlan" || below == nil || below.Kind != "vlan" {
		return ""
	}
	for range m.Spaces[at].Links { // VLANs of a hostile file may be in a circle
		switch {
		case below == nil:
			return ""
		case m.Spaces[at].Nft.Hooks(below.Name):
			return below.Name
		case below.Kind != "vlan":
			return ""
		}
		at, below = m.Other(at, *below)
	}
	return ""
}

// beside returns the devices that packets also cross which cross a device of a namespace: the
// bridge, bond or VRF that it belongs to and, below it, the device of a VLAN or macvlan and the
// ports of a bridge or bond that may lead to other machines.
func (m *Machine) beside(space int, name string) (out []string) {
	links := m.Spaces[space].Links
	i := slices.IndexFunc(links, func(l link.Saved) bool { return l.Name == name })
	if i < 0 {
		return nil
	}
	add := func(l *link.Saved) bool {
		fresh := l.Name != name && !slices.Contains(out, l.Name)
		if fresh {
			out = append(out, l.Name)
		}
		return fresh
	}
	for l, ok := link.ByIndex(links, links[i].Master); ok && add(&l); {
		l, ok = link.ByIndex(links, l.Master)
	}
	for todo := []*link.Saved{&links[i]}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		for j := range links {
			l := &links[j]
			below := l.Index == at.Parent && at.ParentSpace == link.Here && !at.Pair()
			if l.Master == at.Index && l.Kind != "tun" { // a machine's tap is no way out
				_, end := m.Other(space, *l)
				below = below || end == nil || !l.Pair()
			}
			if below && add(l) {
				todo = append(todo, l)
			}
		}
	}
	return out
}
