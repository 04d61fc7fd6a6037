package comparison

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// unpace adds to cells their ratio to the baseline without the machine's pacing, where the run
// measured both sides that way.
func (j study) unpace(cells []analysis.Cell) {
	tune := mode.Tunes(j.File.Header.Plan.Unpaced)
	if tune == "" {
		return
	}
	at := func(c sample.Cell) int {
		return slices.IndexFunc(j.Series, func(s *analysis.Series) bool { return s.Cell == c })
	}
	for n, c := range cells {
		base, ok := j.BaselineOf(max(0, at(c.Cell)))
		if c.Baseline || c.Tune != "" || !ok {
			continue
		}
		mine, its := c.Cell, j.Series[base].Cell
		mine.Tune, its.Tune = tune, tune
		i, b := at(mine), at(its)
		if i < 0 || b < 0 || j.Failed(i) || j.Failed(b) {
			continue
		}
		if x := j.Against(i, b, c.Primary, its.Name()); x.N > 0 {
			cells[n].Unpaced = &x
		}
	}
}
