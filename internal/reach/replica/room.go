package replica

import (
	"bytes"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

// MakeRoom changes the indexes of m's devices that collide with those of there, the devices of a
// new namespace: lo, and tunnels whose modules are loaded. The latter can be neither removed nor
// renumbered. MakeRoom marks m's devices with the same names, and returns the devices that rules
// may name by the old index.
func (m *Machine) MakeRoom(there []link.Saved) (out []Lacks) {
	for i := range m.Spaces {
		s := &m.Spaces[i]
		to := s.room(there)
		if len(to) == 0 {
			continue
		}
		byIndex := slices.ContainsFunc(s.Nft.Messages, namesIndex)
		for j := range s.Links {
			l := &s.Links[j]
			if _, ok := to[l.Index]; ok && byIndex {
				out = append(out, Lacks{Space: i, What: "index of " + l.Name, Device: l.Name,
					Why: "in a new network namespace another device has this index, and rules compare it"})
			}
			renumber(&l.Index, to)
			renumber(&l.Master, to)
		}
		for j := range m.Spaces {
			for k := range m.Spaces[j].Links {
				l := &m.Spaces[j].Links[k]
				if l.ParentSpace == i || l.ParentSpace == link.Here && i == j {
					renumber(&l.Parent, to)
				}
			}
		}
		for _, list := range []*[]raw.Message{&s.Addresses, &s.Nexthops, &s.Routes, &s.Neighbours} {
			*list = slices.Clone(*list)
			for j, x := range *list {
				(*list)[j] = link.Renumber(x, to)
			}
		}
	}
	return out
}

func renumber(index *int, to map[int]int) {
	if n, ok := to[*index]; ok {
		*index = n
	}
}

// room returns the new indexes of devices by their old ones.
func (s *Space) room(there []link.Saved) map[int]int {
	free := 1
	for _, l := range slices.Concat(s.Links, there) {
		free = max(free, l.Index+1)
	}
	to := map[int]int{}
	for i := range s.Links {
		l := &s.Links[i]
		at := slices.IndexFunc(there, func(x link.Saved) bool { return x.Name == l.Name })
		switch {
		case at >= 0:
			l.There = true
			if l.Index != there[at].Index {
				to[l.Index] = there[at].Index
			}
		case slices.ContainsFunc(there, func(x link.Saved) bool { return x.Index == l.Index }):
			to[l.Index] = free
			free++
		}
	}
	return to
}

// namesIndex reports whether a rule may compare a device's index: attribute NFTA_META_KEY is
// NFT_META_IIF or NFT_META_OIF.
func namesIndex(m raw.Message) bool {
	return bytes.Contains(m.Data, []byte("meta\x00")) &&
		(bytes.Contains(m.Data, []byte{8, 0, 2, 0, 0, 0, 0, 4}) ||
			bytes.Contains(m.Data, []byte{8, 0, 2, 0, 0, 0, 0, 5}))
}
