package analysis

import (
	"maps"
	"math"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Unpaired holds how far a load's ratios would have been off if the rows had been measured one
// after the other, each in one piece, instead of in turns.
type Unpaired struct {
	Load string `json:"load"`
	Rows int    `json:"rows"`
	// Off is the median over the rows of the relative distance between such ratios and those by
	// slices. Most is the largest distance, in row Row. Width is the median half-width of the
	// intervals by slices.
	Off   float64 `json:"off"`
	Most  float64 `json:"most"`
	Row   string  `json:"row"`
	Width float64 `json:"half_width"`
}

const leastHalf = 2

// unpaired compares each row's slices in one half of the run with the baseline's in the other half.
func (j *Run) unpaired() (out []Unpaired) {
	loads := map[string]*struct{ offs, widths []float64 }{}
	for i, s := range j.Series {
		b, ok := j.BaselineOf(i)
		if !ok || b == i || s.Cell.Control || j.Failed(i) || j.Failed(b) {
			continue
		}
		x := j.compare(i, b, PrimaryOf(s.Load, s.Cell.Shape))
		ratios := j.halves(i, b)
		if x.slices.Pairs == 0 || len(ratios) == 0 {
			continue
		}
		k := slices.IndexFunc(out, func(u Unpaired) bool { return u.Load == s.Cell.Load })
		if k < 0 {
			k = len(out)
			out = append(out, Unpaired{Load: s.Cell.Load})
			loads[s.Cell.Load] = &struct{ offs, widths []float64 }{}
		}
		u, l := &out[k], loads[s.Cell.Load]
		u.Rows++
		l.widths = append(l.widths, x.HalfWidth()/x.Median)
		for _, r := range ratios {
			off := math.Abs(r/x.Median - 1)
			l.offs = append(l.offs, off)
			if off >= u.Most {
				u.Most, u.Row = off, Label(s.Cell)
			}
		}
	}
	for k, u := range out {
		out[k].Off, out[k].Width = stats.Median(loads[u.Load].offs),
			stats.Median(loads[u.Load].widths)
	}
	return out
}

func (j *Run) halves(i, b int) []float64 {
	s := j.Series[i]
	of := quantity(s.Load, PrimaryOf(s.Load, s.Cell.Shape))
	var rounds []int
	for _, round := range slices.Sorted(maps.Keys(s.slices)) {
		if j.Series[b].slices[round] != nil {
			rounds = append(rounds, round)
		}
	}
	half := len(rounds) / 2
	if half < leastHalf {
		return nil
	}
	first, second := rounds[:half], rounds[len(rounds)-half:]
	level := func(in map[int]*sample.Slices, rounds []int) float64 {
		var all []float64
		for _, r := range rounds {
			all = append(all, of(in[r])...)
		}
		return stats.Median(all)
	}
	var out []float64
	for _, x := range []float64{level(s.slices, second) / level(j.Series[b].slices, first),
		level(s.slices, first) / level(j.Series[b].slices, second)} {
		if x > 0 && !math.IsInf(x, 0) {
			out = append(out, x)
		}
	}
	return out
}
