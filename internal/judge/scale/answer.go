package scale

import (
	"cmp"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// The codes of findings on crowds.
const (
	Scaling = "scaling" // rates of Cells, the modes in a size, by their ratios to the first size
	AtSize  = "at-size" // the same by their ratios to the baseline
	OneSize = "one-size"
	Idle    = "idle-processes"
	Growth  = "growth"       // of one mode, to its largest size
	OneIdle = "idle-process" // of one row
	Largest = "largest-crowd"
)

// Findings returns what the judged cells show, in which each mode's cells are adjacent, or nil
// without cells. It claims no more than the verdicts do.
func Findings(r *analysis.Report) (out []analysis.Finding) {
	if len(r.Cells) == 0 {
		return nil
	}
	var tally analysis.Tally
	var more []analysis.Finding
	for _, g := range largest(r.Cells) {
		c := r.Cells[g[0]]
		grown := analysis.Finding{Code: Scaling, From: c.From, On: c.On, Load: c.Load}
		held := grown
		held.Code = AtSize
		for _, i := range g {
			m := r.Cells[i].Metrics[Rate(c)]
			for _, x := range []struct {
				ratio *analysis.Ratio
				in    *analysis.Finding
			}{{m.Scaling, &grown}, {m.Ratio, &held}} {
				if x.ratio != nil {
					x.in.Cells = append(x.in.Cells, i)
					tally.Add(x.ratio.Verdict, x.ratio.N, x.ratio.Epochs)
				}
			}
		}
		for _, f := range []analysis.Finding{grown, held} {
			if len(f.Cells) > 0 {
				out = append(out, f)
			}
		}
	}
	if len(out) == 0 {
		out = []analysis.Finding{{Code: OneSize}}
	}
	starved := analysis.Finding{Code: Idle}
	for i, c := range r.Cells {
		last := i+1 == len(r.Cells) || !sameMode(c, r.Cells[i+1])
		if last && c.Metrics[Rate(c)].Scaling != nil {
			more = append(more, analysis.Finding{Code: Growth, Cells: []int{i}})
		}
		m := c.Metrics[workload.ProcessMin]
		if len(m.Rounds) == 0 || m.Median != 0 {
			continue
		}
		more = append(more, analysis.Finding{Code: OneIdle, Cells: []int{i}})
		if len(m.Rounds) >= stats.MinJudged {
			starved.Cells = append(starved.Cells, i)
		}
	}
	if len(starved.Cells) > 0 {
		out = append(out, starved)
	}
	if f, ok := tally.Finding(); ok {
		out = append(out, f)
	}
	return append(out, more...)
}

// Rate returns the metric of a crowd's throughput.
func Rate(c analysis.Cell) string { return analysis.Rate(sample.Load{Kind: c.Load}) }

// largest returns each mode's largest size, by place, load and size.
func largest(cells []analysis.Cell) (out [][]int) {
	for i, c := range cells {
		if i+1 < len(cells) && sameMode(c, cells[i+1]) {
			continue
		}
		at := slices.IndexFunc(out, func(g []int) bool {
			o := cells[g[0]]
			return o.From == c.From && o.Load == c.Load && o.On == c.On && o.Shape == c.Shape
		})
		if at < 0 {
			at, out = len(out), append(out, nil)
		}
		out[at] = append(out[at], i)
	}
	return out
}

// biggest returns the crowd with most processes.
func biggest(cells []analysis.Cell) analysis.Finding {
	most := 0
	for i, c := range cells {
		if cmp.Compare(Ends(c), Ends(cells[most])) > 0 {
			most = i
		}
	}
	return analysis.Finding{Code: Largest, Cells: []int{most}, N: Ends(cells[most])}
}

// Ends returns the number of a crowd's processes.
func Ends(c analysis.Cell) int { return c.Shape.Servers + c.Shape.Clients*c.Shape.Procs }
