package plan

import (
	"cmp"
	"errors"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Endpoints plans a comparison of external endpoints, in the order of names, with a control, or a
// trace of what passes over them. The request's baseline must be one of the names.
func Endpoints(r Request, names []string) (sample.Plan, error) {
	r.From, r.On = []mode.Placement{sample.FromHere}, []string{sample.OnEndpoint}
	p := sample.Plan{Study: cmp.Or(r.Study, sample.StudyEndpoints), Seed: r.Seed, Rounds: r.Rounds, Budget: r.Budget,
		Within: r.within(true), Precision: r.Precision,
		Baseline: string(r.Baseline), Loads: r.Loads, Trace: r.Trace}
	if err := r.check(); err != nil {
		return p, err
	}
	if len(names) == 0 {
		return p, errors.New("nothing to measure: no endpoint was given")
	}
	for _, l := range r.Loads {
		for _, w := range names {
			c := sample.Cell{Route: w, From: sample.FromHere, Load: l.Kind, On: sample.OnEndpoint}
			p.Cells = append(p.Cells, c)
			if w == p.Baseline && len(names) > 1 {
				c.Control = true
				p.Cells = append(p.Cells, c)
			}
		}
	}
	return p, nil
}
