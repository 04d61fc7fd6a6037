package replica

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/ipset"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// Singled returns the indexes of the namespaces whose packets may be treated differently from those
// of new containers in the same network: rules compare the source, or the destination of answers,
// with one of their addresses or with the port of a bridge, or a route leads to one of them alone,
// or that port has other settings than the bridge's first or is blocked.
// Tables that only translate addresses do not count.
func (m *Machine) Singled() (out []int) {
	if m.singled != nil {
		return *m.singled
	}
	var from xtables.Sources
	first := map[deviceAt]link.Saved{} // ports, by their bridge
	for i := range m.Spaces {
		m.Spaces[i].sources(&from)
		for _, l := range m.Spaces[i].Links {
			if at := (deviceAt{i, l.Master}); first[at].Slave == nil {
				first[at] = l
			}
		}
	}
	for i := 1; i < len(m.Spaces); i++ {
		if m.singles(i, &from, first) {
			out = append(out, i)
		}
	}
	return out
}

func (s *Space) sources(out *xtables.Sources) {
	s.Nft.Sources(out)
	for _, t := range s.Legacy {
		if t.Name != "nat" {
			t.Sources(out)
		}
	}
	if len(out.Sets) > 0 {
		ipset.Sources(s.Sets, out)
	}
	for _, l := range s.Links {
		if out.Devices[uint32(l.Index)] {
			out.AddName([]byte(l.Name))
		}
	}
	out.Sets, out.Devices = nil, nil // indexes are the namespace's
	for _, m := range s.Policy {
		address, bits, device := link.PolicySource(m)
		out.AddNet(address, bits)
		out.AddName(device)
	}
	for _, m := range slices.Concat(s.Routes, s.Policy) { // of answers
		if address, bits, ok := link.Target(m); ok {
			out.AddNet(address, bits)
		}
	}
}

func (m *Machine) singles(space int, from *xtables.Sources, first map[deviceAt]link.Saved) bool {
	s := &m.Spaces[space]
	for _, l := range s.Links {
		at, end := m.Other(space, l)
		if !l.Pair() || end == nil || at == space {
			continue
		}
		if at := (deviceAt{at, end.Master}); end.Master != 0 && (!end.LikePort(first[at]) ||
			m.Spaces[at.space].Blocks(*end)) {
			return true
		}
		if from.HasName(l.MAC) || from.HasName([]byte(end.Name)) ||
			slices.ContainsFunc(s.Prefixes(l.Index), from.Has) {
			return true
		}
	}
	return false
}
