package sweep

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
)

// Shape is the region of a curve whose points cost more than what counts as the same.
type Shape string

const (
	Every   Shape = "every"   // all certain points cost more, including the first and the last
	From    Shape = "from"    // they cost more from a value on
	UpTo    Shape = "up to"   // they cost more up to a value
	Several Shape = "several" // they cost more, then less, then more, or the reverse
	None    Shape = "none"    // certainly none costs more
	Unclear Shape = "unclear" // none certainly costs more, but some may
)

// Knee is the point from which on, or up to which, a curve costs more.
type Knee struct {
	Shape Shape `json:"shape"`
	// At is the nearest point to the knee at which the curve certainly costs more, and Beside the
	// nearest one on the other side at which it certainly does not. Only From and UpTo have them;
	// Beside may be absent.
	At     string `json:"at,omitempty"`
	Beside string `json:"beside,omitempty"`
	// The points by their certain band.
	Costs   []string `json:"costs,omitempty"`
	Within  []string `json:"within,omitempty"`
	Unknown []string `json:"unclear,omitempty"`
}

// KneeOf returns the knee of a curve with these points, in the order of their values.
func KneeOf(points []Point) Knee {
	var k Knee
	for _, p := range points {
		switch p.Band {
		case analysis.Beyond:
			k.Costs = append(k.Costs, p.Point)
		case analysis.Within:
			k.Within = append(k.Within, p.Point)
		default:
			k.Unknown = append(k.Unknown, p.Point)
		}
	}
	is := func(b analysis.Band) func(Point) bool {
		return func(p Point) bool { return p.Band == b }
	}
	first, firstWithin := slices.IndexFunc(points, is(analysis.Beyond)),
		slices.IndexFunc(points, is(analysis.Within))
	last, lastWithin := lastIndex(points, analysis.Beyond), lastIndex(points, analysis.Within)
	switch {
	case first < 0 && len(k.Unknown) == 0:
		k.Shape = None
	case first < 0:
		k.Shape = Unclear
	case firstWithin < 0 && first == 0 && last == len(points)-1:
		k.Shape = Every
	case lastWithin < first && (first > 0 || firstWithin >= 0):
		k.Shape, k.At = From, points[first].Point
		if lastWithin >= 0 {
			k.Beside = points[lastWithin].Point
		}
	case firstWithin < 0 || firstWithin > last:
		k.Shape, k.At = UpTo, points[last].Point
		if firstWithin >= 0 {
			k.Beside = points[firstWithin].Point
		}
	default:
		k.Shape = Several
	}
	return k
}

func lastIndex(points []Point, b analysis.Band) int {
	for i := len(points) - 1; i >= 0; i-- {
		if points[i].Band == b {
			return i
		}
	}
	return -1
}
