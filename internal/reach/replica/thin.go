package replica

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

// maxBridges is the most bridges that are copied: one more than Docker's default address pools
// allow. While the kernel removes one, which takes 20 ms, no program on the machine can change
// network devices, and it removes all of a copy at once.
const maxBridges = 32

// deviceAt is a device, by its namespace and index.
type deviceAt struct{ space, index int }

// absent has what a copy leaves out of a Machine, as doubts by namespace.
type absent struct {
	bridges map[deviceAt]string // with the doubts about packets that cross them
	doubts  map[int][]doubt
	lacks   []Lacks
}

// thin leaves out bridges if m has more than maxBridges: in the result they are devices that lead
// nowhere. Those come first that m.First names, then those with stand-ins behind them, then those
// with ports.
func (m *Machine) thin(sockets []Socket) (*Machine, absent) {
	out := absent{bridges: map[deviceAt]string{}, doubts: map[int][]doubt{}}
	all := m.bridges(sockets)
	if len(all) <= maxBridges {
		return m, out
	}
	why := fmt.Sprintf("of %d bridges, %d are copied: while the kernel removes copies, no program "+
		"can change this machine's devices", len(all), maxBridges)
	out.lacks = []Lacks{{What: fmt.Sprintf("%d bridges", len(all)-maxBridges), Why: why}}
	thin := *m
	thin.Spaces = slices.Clone(m.Spaces)
	for i := range thin.Spaces {
		thin.Spaces[i].Links = slices.Clone(m.Spaces[i].Links)
	}
	for _, b := range all[maxBridges:] {
		links := thin.Spaces[b.space].Links
		for i := range links {
			l := &links[i]
			switch {
			case l.Index == b.index:
				text := "bridge " + l.Name + ": " + why
				out.bridges[b] = text
				out.doubts[b.space] = append(out.doubts[b.space], doubt{device: l.Name, text: text})
				l.Kind, l.NoARP, l.Data, l.VLANs = "dummy", true, nil, nil
			case l.Master == b.index:
				l.Master, l.Slave, l.VLANs = 0, nil, nil
				if at, end := m.Other(b.space, *l); end != nil && at != b.space {
					out.doubts[at] = append(out.doubts[at], doubt{text: "its bridge: " + why})
				}
			}
		}
	}
	return &thin, out
}

// bridges lists the bridges of all namespaces, the most important ones first.
func (m *Machine) bridges(sockets []Socket) (all []deviceAt) {
	const named, serving, used, idle = 0, 1, 2, 3
	rank := map[deviceAt]int{}
	serves := map[int]bool{}
	for _, s := range sockets {
		serves[s.Space] = true
	}
	for i, s := range m.Spaces {
		for _, l := range s.Links {
			if l.Kind == "bridge" {
				at := deviceAt{i, l.Index}
				all = append(all, at)
				rank[at] = idle
				if i == 0 && slices.Contains(m.First, l.Name) {
					rank[at] = named
				}
			}
		}
		for _, l := range s.Links {
			if at := (deviceAt{i, l.Master}); l.Master != 0 && rank[at] > serving {
				rank[at] = used
				if space, end := m.Other(i, l); end != nil && space != i && serves[space] {
					rank[at] = serving
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b deviceAt) int { return cmp.Compare(rank[a], rank[b]) })
	return all
}

// failed returns the answer to a dial whose client is at a bridge that is left out; else ok is
// false.
func (a absent) failed(m *Machine, from Client) (answer Answer, ok bool) {
	at := cmp.Or(from.Bridge, from.Card)
	if len(a.bridges) == 0 || at == "" || from.Space >= len(m.Spaces) {
		return answer, false
	}
	links := m.Spaces[from.Space].Links
	i := slices.IndexFunc(links, func(l link.Saved) bool { return l.Name == at })
	if i < 0 {
		return answer, false
	}
	why, ok := a.bridges[deviceAt{from.Space, links[i].Index}]
	return Answer{Outcomes: []Outcome{{Got: Failed, Err: why, Socket: -1}}}, ok
}
