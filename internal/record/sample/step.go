package sample

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Variant is a mode with tunes.
type Variant struct {
	Mode mode.Name  `json:"mode"`
	Tune mode.Tunes `json:"tune,omitempty"`
}

// VariantOf returns a cell's variant, or the baseline's if another mode replaces it there.
func (p Plan) VariantOf(c Cell) Variant {
	if p.Elsewhere != "" && string(c.Mode) == p.Elsewhere {
		c.Mode = mode.Name(p.Baseline)
	}
	return Variant{c.Mode, c.Tune}
}

// Lever is one change that a search tries, with the variant that it makes of the mode alone.
type Lever struct {
	Name string `json:"name"`
	Variant
}

// Search is the search for what makes a mode faster.
type Search struct {
	Baseline  string  `json:"baseline"`
	Elsewhere string  `json:"elsewhere,omitempty"`
	Levers    []Lever `json:"levers"`
}

// Step is a further part of a run, chosen by earlier measurements.
type Step struct {
	Round int `json:"round"` // the first one
	// Begins is another mode's search; nil: the present one continues.
	Begins *Search `json:"begins,omitempty"`
	// Lever is what is tried; Before and After are the variants without and with it.
	Lever  string  `json:"lever"`
	Before Variant `json:"before"`
	After  Variant `json:"after"`
	// Active indexes the cells measured from now on. Cells, Paths and Skipped are appended to the
	// plan's and the header's.
	Active  []int  `json:"active"`
	Cells   []Cell `json:"cells,omitempty"`
	Paths   []Path `json:"paths,omitempty"`
	Skipped []Skip `json:"skipped,omitempty"`
}

const maxSteps = 1000

// Take adds a step to the header. Copies of the header are not changed.
func (h *Header) Take(s Step) {
	h.Plan.Cells = append(slices.Clip(h.Plan.Cells), s.Cells...)
	h.Plan.Skipped = append(slices.Clip(h.Plan.Skipped), s.Skipped...)
	h.Paths = append(slices.Clip(h.Paths), s.Paths...)
	s.Paths, s.Skipped = nil, nil // Cells remain, as their number is needed
	h.Plan.Steps = append(slices.Clip(h.Plan.Steps), s)
}

func (f *File) addStep(s Step) error {
	h := &f.Header
	first := 0
	if n := len(h.Plan.Steps); n > 0 {
		first = h.Plan.Steps[n-1].Round
	}
	switch {
	case h.Plan.Mesh != nil:
		return errors.New("a step, but the plan is a mesh's")
	case s.Round < first || s.Round > maxVisits:
		return fmt.Errorf("impossible first round %d of a step", s.Round)
	case len(h.Plan.Steps) >= maxSteps:
		return fmt.Errorf("more than %d steps", maxSteps)
	case len(s.Active) > maxCells || len(h.Plan.Cells)+len(s.Cells) > maxCells:
		return fmt.Errorf("more than %d cells", maxCells)
	}
	h.Take(s)
	for _, i := range s.Active {
		if i < 0 || i >= len(h.Plan.Cells) {
			return fmt.Errorf("cell %d is not in the plan, which has %d cells", i,
				len(h.Plan.Cells))
		}
	}
	return h.check()
}

func (p Plan) cellsIn(round int) int {
	n := p.own()
	for _, s := range p.Steps {
		if s.Round <= round {
			n = len(s.Active)
		}
	}
	return n
}

// Difference is a changed setting of a path.
type Difference struct {
	Where string `json:"where"` // "machine A"
	What  string `json:"what"`  // "MTU of veth-server"
	Was   string `json:"was,omitempty"`
	Is    string `json:"is,omitempty"` // empty: absent
}

// ChangeLeft is the What of a change that is reported because an end of a path, such as a pod, has
// gone. Was and Is contain the reason.
const ChangeLeft = "an end"

// Change is a difference found during a run. Its cells have no result, because it may affect all
// measurements between the two readings.
type Change struct {
	Difference
	Cells []int   `json:"cells"`   // indexes into Plan.Cells
	Round int     `json:"round"`   // the first that may be affected
	Right float64 `json:"right_s"` // time of the last unchanged reading, since the run's start
	Seen  float64 `json:"seen_s"`
}

const maxChanges = 100_000

func (f *File) addChange(c Change) error {
	if len(f.Changes) >= maxChanges {
		return fmt.Errorf("more than %d changes", maxChanges)
	}
	if n := len(f.Header.Plan.Cells); len(c.Cells) > n {
		return fmt.Errorf("a change of %d cells: the plan has only %d", len(c.Cells), n)
	}
	for _, i := range c.Cells {
		if n := len(f.Header.Plan.Cells); i < 0 || i >= n {
			return fmt.Errorf("cell %d is not in the plan, which has %d cells", i, n)
		}
	}
	if c.Round < 0 || c.Round > maxVisits {
		return fmt.Errorf("impossible round %d", c.Round)
	}
	if err := times(c.Right, c.Seen); err != nil {
		return err
	}
	f.Changes = append(f.Changes, c)
	return nil
}
