package path

import "github.com/bridgetoll/bridgetoll/internal/record/mode"

// thing is a device or a rule of a machine that several paths are on: what is of one
// kind and has one name in one place is one.
type thing struct {
	kind        mode.HopKind
	name, where string
}

// Share notes which of a path's hops and guards are those of a machine that other
// paths are on, too.
func Share(p *Path, ofMachine func(Hop) bool) {
	for _, hops := range [][]Hop{p.Hops, p.Guards} {
		for i, h := range hops {
			if h.Shared == nil && ofMachine(h) {
				hops[i].Shared = thing{h.Kind, h.Name, h.Where}
			}
		}
	}
}
