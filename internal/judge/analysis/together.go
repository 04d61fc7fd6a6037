package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// A row counts as on one CPU from a share of mostlyTogether on, and as on own CPUs up to
// mostlyApart.
const (
	mostlyTogether = 0.7
	mostlyApart    = 0.3
)

func (s *Series) together() *float64 {
	sum, n := 0.0, 0
	for _, v := range s.Visits {
		if v.Together != nil {
			sum += *v.Together
			n++
		}
	}
	if n == 0 {
		return nil
	}
	share := sum / float64(n)
	return &share
}

// TogetherWords returns "on one CPU for 87 % of the time" for an unpinned row, "" if not known.
func (c Cell) TogetherWords() string {
	if c.Together == nil {
		return ""
	}
	return fmt.Sprintf("on one CPU for %.0f %% of the time", 100**c.Together)
}

// Together returns, in words, for how much of the time an unpinned client and server shared a CPU,
// and the corresponding placement of toll compare, or "" if it is not known.
func (r *Report) Together() string {
	var all []Cell
	for _, c := range r.Cells {
		if c.Together != nil {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return ""
	}
	byShare := func(a, b Cell) int { return cmp.Compare(*a.Together, *b.Together) }
	least, most := slices.MinFunc(all, byShare), slices.MaxFunc(all, byShare)
	low, high := fmt.Sprintf("%.0f", 100**least.Together), fmt.Sprintf("%.0f", 100**most.Together)
	share := high + " %"
	if low != high {
		share = low + " to " + share
	}
	like := ""
	switch {
	case *least.Together >= mostlyTogether:
		like = ", as in toll compare --pin " + sample.PinNear
	case *most.Together <= mostlyApart:
		like = ", as in toll compare --pin " + sample.PinFar
	}
	return fmt.Sprintf("The scheduler had client and server on one CPU for %s of the time%s.",
		share, like)
}

func (j *Run) mixedPlacements() (out []Finding) {
	type table struct {
		from            mode.Placement
		load, point, on string
	}
	type extremes struct{ near, far int }
	found := map[table]*extremes{}
	var order []table
	for i, s := range j.Series {
		share := s.together()
		if share == nil || s.Cell.Control {
			continue
		}
		t := table{s.Cell.From, s.Cell.Load, s.Cell.Point, s.Cell.On}
		if found[t] == nil {
			found[t], order = &extremes{}, append(order, t)
		}
		switch x := found[t]; {
		case *share >= mostlyTogether && x.near == 0:
			x.near = i + 1
		case *share <= mostlyApart && x.far == 0:
			x.far = i + 1
		}
	}
	name := func(i int) string { return j.cell(i - 1).Name() }
	for _, t := range order {
		x := found[t]
		if x.near == 0 || x.far == 0 {
			continue
		}
		out = append(out, Finding{Code: MixedPlacement, From: t.from, On: t.on, Load: t.load,
			What: name(x.near), Why: name(x.far)})
	}
	return out
}
