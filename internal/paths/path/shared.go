package path

import "github.com/bridgetoll/bridgetoll/internal/record/mode"

// thing is a device or a rule of a machine that several paths are on. Things of one kind and name
// in one place are the same.
type thing struct {
	kind        mode.HopKind
	name, where string
}

// counter is a counter of a device, or of a thing of the given kind and name, in one place.
type counter struct {
	thing  any
	where  string
	counts Counter
	back   bool
}

// Share marks those of a path's hops and guards that belong to a machine with other paths.
func Share(p *Path, ofMachine func(Hop) bool) {
	for _, hops := range [][]Hop{p.Hops, p.Guards} {
		for i, h := range hops {
			if h.Shared == nil && ofMachine(h) {
				hops[i].Shared = thing{h.Kind, h.Name, h.Where}
			}
		}
	}
}

// Counters returns what identifies the hop's forward and backward counters; hops of other paths
// with an equal one read the same counter. They are nil if the hop is this path's own.
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

// Takes returns the directions of a client's bytes that the hop's forward and backward counters
// count.
func (h Hop) Takes() [2]Ways {
	if h.Expect == CarriesBoth {
		return [2]Ways{{true, true}, {}}
	}
	return [2]Ways{{Forward: true}, {Backward: true}}
}
