package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// refusal is an error with a hint.
type refusal struct {
	error
	hint string
}

func (e *refusal) Hint() string { return e.hint }

func refuse(hint, format string, args ...any) error {
	return &refusal{fmt.Errorf(format, args...), hint}
}

// Climb returns the request of a ladder: the rungs from the bottom up to the modes that r names, or
// to the usual ones if it names none. all leaves out the modes without a rung, which are an error
// otherwise. Its errors have a Hint.
func Climb(r Request, all bool) (Request, error) {
	if len(r.From) != 1 {
		return r, refuse("one run for each: --from "+string(r.From[0]),
			"toll ladder takes one --from, not %d", len(r.From))
	}
	if len(r.To) > 1 || len(mode.Inward(r.To)) > 0 {
		return r, &refusal{errors.New("toll ladder chooses the inward targets itself"),
			"leave --to out, or --to " + string(mode.ToOutside)}
	}
	var direction mode.Target
	if len(r.To) > 0 {
		direction, r.To = r.To[0], nil
	}
	rungs, err := r.rungs(direction, all)
	if err != nil {
		return r, err
	}
	r.Study, r.Baseline = sample.StudyLadder, rungs[0].Mode
	r.Modes = slices.Clip(r.Modes)
	for _, rung := range rungs {
		r.To = append(r.To, rung.To)
		if !slices.Contains(r.Modes, rung.Mode) {
			r.Modes = append(r.Modes, rung.Mode)
		}
	}
	return r, nil
}

// rungs returns at least two rungs.
func (r Request) rungs(direction mode.Target, all bool) ([]mode.Rung, error) {
	from, to := r.From[0], r.Modes
	if len(to) == 0 {
		to = mode.Usual()
	}
	for _, n := range r.Modes {
		if _, ok := mode.FindRung(from, direction, n); !ok && !all {
			m, _ := mode.Find(n)
			why, around := m.WhyNot(from)
			if direction.Outside() {
				why, around = m.WhyNotOut(from)
			}
			return nil, refuse(around, "there is no ladder to %s from %s: %s", n, from, why)
		}
	}
	rungs := mode.Climb(from, direction, to)
	switch len(rungs) {
	case 0:
		return nil, refuse("--from "+string(mode.FromContainer),
			"there is no ladder outward from %s", from)
	case 1:
		hint := "toll ladder --from " + string(from)
		if direction.Outside() {
			hint += " --to " + string(direction)
		}
		return nil, refuse(hint,
			"%s is the bottom of the ladder from %s: it has no part to price", rungs[0].Mode, from)
	}
	return rungs, nil
}
