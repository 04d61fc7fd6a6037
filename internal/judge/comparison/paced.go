package comparison

import (
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
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

// unpacedWords returns what a cell's change is without the machine's pacing: "all of it bbr's pacing:
// 0 % with reno", or "" if that is not known or makes no certain difference.
func (p place) unpacedWords(c analysis.Cell) string {
	here, there := c.Metrics[c.Primary].Ratio, c.Unpaced
	if here == nil || there == nil ||
		here.Verdict == stats.Unclear && there.Verdict == stats.Unclear {
		return ""
	}
	_, instead, _ := strings.Cut(p.r.Plan.Unpaced, "=")
	paces := p.r.Environment.Congestion
	with := percentOf(*there) + " with " + instead
	if there.Verdict == stats.Unclear {
		with = there.Even() + " % with " + instead
	}
	switch {
	case here.Verdict != stats.Unclear && here.Low <= there.High && there.Low <= here.High:
		return ""
	case p.paced: // said before
		return with
	case here.Verdict == stats.Unclear:
		return with + ", unclear with " + paces
	}
	return shareOf(here.Median, there.Median) + " " + paces + "'s pacing: " + with
}

// knows reports whether the route's result without pacing is known.
func (p place) knows(x route) bool {
	return slices.ContainsFunc(x.cells, func(c analysis.Cell) bool {
		return p.unpacedWords(c) != ""
	})
}

// shareOf returns in words how much of a difference pacing makes.
func shareOf(here, there float64) string {
	const nearly, most = 0.1, 0.5
	switch left := math.Log(there) / math.Log(here); {
	case left <= 0 || percent(there) == percent(1):
		return "all of it"
	case left < nearly:
		return "nearly all of it"
	case left < most:
		return "most of it"
	case left < 1:
		return "part of it"
	}
	return "reduced by"
}
