package comparison

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// againstLab compares each cell that another backend built with the lab's, to show how well the lab
// models it here.
func (j study) againstLab() []string {
	var say sayings
	for i, s := range j.Series {
		model := s.Cell
		model.On = sample.Lab
		b := slices.IndexFunc(j.Series, func(o *analysis.Series) bool { return o.Cell == model })
		if s.Cell.On == sample.Lab || s.Cell.Control || b < 0 || j.Failed(i) || j.Failed(b) {
			continue
		}
		if x := j.Against(i, b, analysis.Primary(s.Load), "the lab"); x.N > 0 {
			say.add(s.Cell, fmt.Sprintf("%s on %s, from %s", analysis.Label(s.Cell), s.Cell.On,
				s.Cell.From.Words())+j.onPin(s.Cell), j.Words(s.Load, x))
		}
	}
	return say.out
}
