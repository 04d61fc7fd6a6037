package plan

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// NothingError means that nothing, or not what a run is about, can be measured here.
type NothingError struct {
	what string
	skip sample.Skip
}

func (e *NothingError) Error() string { return e.what + ": " + e.skip.Reason }

// Hint returns the remedy for what is missing, or "".
func (e *NothingError) Hint() string { return e.skip.Remedy }

// Measurable returns a NothingError if no cell is left of a plan, none of a backend that was asked
// for, none of its baseline or, unless it names levers, none of the modes that were asked for. Later
// steps of a search may build more modes.
func Measurable(p sample.Plan, on []string, asked []mode.Name) error {
	if len(p.Cells) == 0 {
		return nothing("nothing can be measured here: %s", usual(p.Skipped))
	}
	has := func(is func(sample.Cell) bool) bool { return slices.ContainsFunc(p.Cells, is) }
	for _, s := range p.Skipped {
		if string(s.Mode) == p.Baseline && s.On != "" &&
			!has(func(c sample.Cell) bool { return c.Mode == s.Mode }) {
			return nothing("the baseline %s cannot be measured here", s)
		}
	}
	for _, name := range on {
		of := func(s sample.Skip) bool { return s.On == name }
		i := slices.IndexFunc(p.Skipped, of)
		if i >= 0 && !has(func(c sample.Cell) bool { return c.On == name }) {
			return nothing("nothing can be measured here with --on "+name+": %s", p.Skipped[i])
		}
	}
	if len(p.Skipped) == 0 || len(p.Levers) > 0 || has(func(c sample.Cell) bool {
		return string(c.Mode) != p.Baseline || slices.Contains(asked, c.Mode) ||
			c.Tune != "" && string(c.Tune) != p.Unpaced
	}) {
		return nil
	}
	return nothing("nothing can be measured here: %s", usual(p.Skipped))
}

// usual returns the last skip with the reason that most skips have, of those by a backend if there
// are any. Another one explains only why its own mode is not measured.
func usual(skips []sample.Skip) sample.Skip {
	count := map[string]int{}
	best := skips[0]
	rank := func(s sample.Skip) int {
		n := count[s.Reason]
		if s.On != "" {
			n += len(skips)
		}
		return n
	}
	for _, s := range skips {
		count[s.Reason]++
	}
	for _, s := range skips {
		if rank(s) >= rank(best) {
			best = s
		}
	}
	return best
}

// nothing returns the error about a mode, whose name the format has.
func nothing(format string, s sample.Skip) error {
	return &NothingError{fmt.Sprintf(format, s.Mode), s}
}

// Unmeasured returns the first skips of the modes that were asked for and that no cell has.
func Unmeasured(p sample.Plan, asked []mode.Name) (out []sample.Skip) {
	for _, m := range asked {
		i := slices.IndexFunc(p.Skipped, func(s sample.Skip) bool { return s.Mode == m })
		if i >= 0 && !slices.ContainsFunc(p.Cells, func(c sample.Cell) bool { return c.Mode == m }) {
			out = append(out, p.Skipped[i])
		}
	}
	return out
}
