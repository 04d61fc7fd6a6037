package build

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// device identifies a device by its namespace and index.
type device struct{ space, index int }

// role is what a device becomes in the copy.
type role int

const (
	loopback role = iota
	native        // the same kind of device
	pair          // a veth whose other end is also in the copy
	child         // a VLAN or macvlan on a device that is in the copy
	card          // a veth whose other end is in a world
)

func roleOf(m *replica.Machine, space int, l link.Saved) role {
	switch l.Kind {
	case "bridge", "dummy", "vrf":
		return native
	case "veth", "netkit":
		at, other := m.Other(space, l)
		if other == nil || other.Kind != l.Kind {
			return card
		}
		if back, end := m.Other(at, *other); end == nil || back != space || end.Index != l.Index {
			return card
		}
		return pair
	case "macvlan", "macvtap", "ipvlan", "ipvtap", "vlan":
		_, below := m.Other(space, l)
		if below == nil || l.Kind == "vlan" && below.Kind == "vlan" {
			return card
		}
		return child
	}
	if l.Name == "lo" || l.There {
		return loopback
	}
	return card
}

// segment is a network outside the machine, or several networks that overlap.
type segment struct {
	space int
	// cards lists the cards in the network, and VLANs of other networks' cards. Of several ports of
	// one bridge it has only the best (see rankOf).
	cards []link.Saved
	// joined has the VLANs of bridges that cards carry untagged.
	joined []device
	roots  []device
	own    []netip.Prefix // the machine's and its containers' addresses
	gates  []netip.Addr   // gateways and other ends of point-to-point links
	// routers has the gateways of a container's default routes, by whether they are of IPv6; nil: the
	// machine is the gateway.
	routers map[bool]netip.Addr
	world   *world
}

// survey has what a Machine reveals about its networks.
type survey struct {
	roles    map[device]role
	roots    map[device]device // by device, the one with the addresses; see root
	segments []*segment
	trunks   map[device]device // the cards of VLANs in segments
	own      map[device][]netip.Prefix
	gates    map[device][]netip.Addr // see segment
	taken    map[netip.Addr]bool     // addresses of the machine, its containers and routers
	// residents has, by bridge, the addresses of containers there of a family of which it has none
	// itself; routers has the containers' gateways.
	residents map[device][]netip.Prefix
	routers   map[device][]netip.Addr
}

func surveyed(m *replica.Machine) *survey {
	s := &survey{roles: map[device]role{}, roots: map[device]device{}, trunks: map[device]device{},
		own: map[device][]netip.Prefix{}, gates: map[device][]netip.Addr{},
		taken: map[netip.Addr]bool{}}
	for i := range m.Spaces {
		for _, l := range m.Spaces[i].Links {
			s.roles[device{i, l.Index}] = roleOf(m, i, l)
		}
	}
	for i := range m.Spaces {
		for _, l := range m.Spaces[i].Links {
			s.roots[device{i, l.Index}] = s.root(m, i, l)
		}
	}
	for i := range m.Spaces {
		for _, a := range m.Spaces[i].Addresses {
			if at, ok := link.ParseAddress(a); ok {
				on := s.roots[device{i, at.Index}]
				s.taken[at.Prefix.Addr()] = true
				if l, ok := link.ByIndex(m.Spaces[i].Links, at.Index); !ok || !l.Routed() {
					s.own[on] = append(s.own[on], at.Prefix)
				}
				if at.Peer.IsValid() {
					s.taken[at.Peer] = true
					s.gates[on] = append(s.gates[on], at.Peer)
				}
			}
		}
		for _, r := range slices.Concat(m.Spaces[i].Routes, m.Spaces[i].Nexthops) {
			for _, h := range link.ParseHops(r) {
				if h.Gateway.IsValid() {
					on := s.roots[device{i, h.Index}]
					s.taken[h.Gateway] = true
					s.gates[on] = append(s.gates[on], h.Gateway)
				}
			}
		}
	}
	s.findResidents(m)
	for i := range m.Spaces {
		s.findSegments(m, i)
	}
	s.findTrunks(m)
	return s
}

func (s *survey) findResidents(m *replica.Machine) {
	s.residents, s.routers = map[device][]netip.Prefix{}, map[device][]netip.Addr{}
	addresses := map[netip.Addr]bool{}
	for _, own := range s.own {
		for _, p := range own {
			addresses[p.Addr()] = true
		}
	}
	for i := range m.Spaces {
		for _, l := range m.Spaces[i].Links {
			at, port := m.Other(i, l)
			if !l.Pair() || port == nil || port.Master == 0 || at == i {
				continue
			}
			on, in := s.roots[device{at, port.Index}], device{i, l.Index}
			if b, ok := link.ByIndex(m.Spaces[at].Links, on.index); ok && b.FiltersVLANs() {
				continue // the container may be in another VLAN than the bridge
			}
			for _, p := range s.own[in] {
				if !slices.ContainsFunc(s.own[on], func(o netip.Prefix) bool {
					return o.Addr().Is4() == p.Addr().Is4() && !o.Addr().IsLinkLocalUnicast()
				}) {
					s.residents[on] = append(s.residents[on], p)
				}
			}
			for _, g := range s.gates[in] {
				if !addresses[g] && !g.IsLinkLocalUnicast() {
					s.routers[on] = append(s.routers[on], g)
				}
			}
		}
	}
}

// ownAt returns the addresses of this machine and its containers in a device's network.
func (s *survey) ownAt(on device) []netip.Prefix {
	return append(slices.Clip(s.own[on]), s.residents[on]...)
}

func (s *survey) gatesAt(on device) []netip.Addr {
	return append(slices.Clip(s.gates[on]), s.routers[on]...)
}

// root returns the bridge of a port, the parent of a macvlan, or else the device itself.
func (s *survey) root(m *replica.Machine, space int, l link.Saved) device {
	for range len(m.Spaces[space].Links) {
		if s.roles[device{space, l.Index}] == child && l.Kind != "vlan" {
			at, below := m.Other(space, l)
			space, l = at, *below
			continue
		}
		b, ok := link.ByIndex(m.Spaces[space].Links, l.Master)
		if !ok || b.Kind != "bridge" || l.Master == 0 || l.Kind == "bridge" {
			break
		}
		l = b
	}
	return device{space, l.Index}
}

func (s *survey) findSegments(m *replica.Machine, space int) {
	cards := map[device][]link.Saved{}
	for _, l := range m.Spaces[space].Links {
		if s.roles[device{space, l.Index}] == card || s.outward(m, space, l) {
			on := s.roots[device{space, l.Index}]
			cards[on] = append(cards[on], l)
		}
	}
	for _, l := range m.Spaces[space].Links {
		on := device{space, l.Index}
		if len(cards[on]) == 0 {
			continue
		}
		slices.SortStableFunc(cards[on], func(a, b link.Saved) int {
			return cmp.Compare(rankOf(a, m.Spaces[space].Blocks(a)), rankOf(b, m.Spaces[space].Blocks(b)))
		})
		s.add(&segment{space: space, cards: cards[on][:1], roots: []device{on},
			own: s.ownAt(on), gates: s.gatesAt(on)})
	}
}

// outward reports whether the device is a VLAN on a card, or on a bridge, which may have one as a
// port.
func (s *survey) outward(m *replica.Machine, space int, l link.Saved) bool {
	at, below := m.Other(space, l)
	return l.Kind == "vlan" && s.roles[device{space, l.Index}] == child &&
		(s.roles[device{at, below.Index}] == card || below.Kind == "bridge")
}

// findTrunks finds the card of each VLAN in a segment. A VLAN of a card that leads nowhere is itself
// made as a card. One of a bridge leads nowhere without a card, or is the network of the card that
// has it untagged.
func (s *survey) findTrunks(m *replica.Machine) {
	for _, n := range slices.Clone(s.segments) {
		n.cards = slices.DeleteFunc(n.cards, func(l link.Saved) bool {
			at := device{n.space, l.Index}
			if s.roles[at] != child {
				return false
			}
			space, below := m.Other(n.space, l)
			on := device{space, below.Index}
			base, trunk, ok := s.trunk(on)
			tagged, untagged := trunk.Carries(l)
			switch {
			case s.roles[on] == card && !ok:
				s.roles[at] = card
			case s.roles[on] == card || ok && (tagged || !below.FiltersVLANs()):
				s.trunks[at] = device{base.space, trunk.Index}
			case ok && untagged:
				base.joined = append(base.joined, at)
				base.roots = append(base.roots, s.roots[at])
				base.own = append(slices.Clip(base.own), n.own...)
				base.gates = append(slices.Clip(base.gates), n.gates...)
				return true
			default:
				return true
			}
			return false
		})
	}
	s.segments = slices.DeleteFunc(s.segments, func(n *segment) bool { return len(n.cards) == 0 })
}

// trunk returns the card by which frames of a card or a bridge leave, and its segment.
func (s *survey) trunk(on device) (in *segment, l link.Saved, ok bool) {
	if in = s.around(on); in == nil {
		return nil, l, false
	}
	for _, l := range in.cards {
		at := device{in.space, l.Index}
		if s.roles[at] == card && (at == on || s.roles[on] != card && s.roots[at] == on) {
			return in, l, true
		}
	}
	return nil, l, false
}

// rankOf returns the rank of a card among those of its bridge; the lowest is the best. Those that
// pass packets come first, then running devices, then hardware.
func rankOf(l link.Saved, blocked bool) (rank int) {
	if l.Kind == "" {
		rank--
	}
	if l.Up && l.Lower {
		rank -= 2
	}
	if blocked {
		rank += 4
	}
	return rank
}

// add adds a network. If it overlaps another one of the same namespace, as with two cards on one
// cable, add merges the two.
func (s *survey) add(n *segment) {
	for _, o := range s.segments {
		if o.space != n.space || o.cards[0].NoARP || n.cards[0].NoARP || !overlap(o.own, n.own) {
			continue
		}
		o.cards = append(o.cards, n.cards...)
		o.roots = append(o.roots, n.roots...)
		o.own = append(slices.Clip(o.own), n.own...)
		o.gates = append(slices.Clip(o.gates), n.gates...)
		return
	}
	s.segments = append(s.segments, n)
}

func overlap(a, b []netip.Prefix) bool {
	for _, p := range a {
		for _, q := range b {
			if !p.Addr().IsLinkLocalUnicast() && !p.IsSingleIP() && !q.IsSingleIP() &&
				p.Overlaps(q) {
				return true
			}
		}
	}
	return false
}

// segmentOf returns the network of a card, or nil.
func (s *survey) segmentOf(at device) *segment {
	for _, seg := range s.segments {
		if seg.space == at.space && slices.ContainsFunc(seg.cards, func(l link.Saved) bool {
			return l.Index == at.index
		}) {
			return seg
		}
	}
	return nil
}

// around returns the network of a device's addresses, or nil.
func (s *survey) around(at device) *segment {
	for _, seg := range s.segments {
		if slices.Contains(seg.roots, s.roots[at]) {
			return seg
		}
	}
	return nil
}
