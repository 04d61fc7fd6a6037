package path

import "github.com/bridgetoll/bridgetoll/internal/record/mode"

// thing is a device or a rule of a machine that several paths are on: what is of one
// kind and has one name in one place is one.
type thing struct {
	kind        mode.HopKind
	name, where string
}

// counter is a counter of a device or a rule in one place: of the device, or of what is of one
// kind and has one name.
type counter struct {
	thing  any
	where  string
	counts Counter
	back   bool
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

// Counters returns what the hop's forward and backward counters are; hops of other paths that
// have an equal one read the same. They are nil if the hop is this path's own.
func (h Hop) Counters() (out [2]any) {
	if h.Shared == nil {
		return out
	}
	_, named := h.Shared.(thing)
	for i, c := range h.Counts {
		switch {
		case h.Counts == [2]Counter{}:
			out[i] = counter{thing: h.Shared, back: i == 1}
		case c == Counter{}:
		case named:
			out[i] = counter{where: h.Where, counts: c}
		default:
			out[i] = counter{thing: h.Shared, counts: c}
		}
	}
	return out
}

// Takes returns which directions of a client's bytes that cross the hop its forward and backward
// counters count.
func (h Hop) Takes() [2]Ways {
	if h.Expect == CarriesBoth {
		return [2]Ways{{true, true}, {}}
	}
	return [2]Ways{{Forward: true}, {Backward: true}}
}
