package truth

import (
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	bulk = "bulk"
	rr   = "rr"
)

// The length of the slices is in s.
func sliced(p sample.Plan, length float64) sample.Plan {
	p.Loads = slices.Clone(p.Loads)
	for i := range p.Loads {
		p.Loads[i].Slice = length
	}
	return p
}

// warmup is longer than slow start, in s.
const warmup = 0.1

func visited(p sample.Plan, window time.Duration) sample.Plan {
	p.Loads = slices.Clone(p.Loads)
	for i := range p.Loads {
		l := &p.Loads[i]
		l.Slice, l.Window, l.Warmup = 0, window.Seconds(), warmup
	}
	p.Same, p.Epoch = 0, 0
	return p
}

func under(p sample.Plan, load string) sample.Plan {
	p.Loads = slices.DeleteFunc(slices.Clone(p.Loads), func(l sample.Load) bool {
		return l.Kind != load
	})
	p.Cells = slices.DeleteFunc(slices.Clone(p.Cells), func(c sample.Cell) bool {
		return c.Load != load
	})
	return p
}
