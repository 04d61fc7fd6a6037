package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// addedColumn returns the column with what modes add. ok is false if no mode has that figure, or if
// another table shows it.
func addedColumn(r *analysis.Report, cells []analysis.Cell) (col column, ok bool) {
	l := r.Plan.Loads.Of(cells[0].Load)
	metric, unit := workload.Of(l).Primary, heads.Of(l).Adds
	if level, _ := fitting(r, cells[0].Load, metric); level == "µs" {
		unit = level // as the baseline's figure and the answer
	}
	show, ok := map[string]func(analysis.Price) string{
		"µs": analysis.Price.String, "ms": analysis.Price.Milliseconds}[unit]
	if !ok {
		return col, false
	}
	known := func(c analysis.Cell) bool {
		return !c.Shape.Crowd() && c.Metrics[metric].Price != nil
	}
	plain := func(p analysis.Price) string { // the next column's ratio has its verdict
		p.Verdict = stats.Costs
		return show(p)
	}
	return column{texts(addedHead, unit), adds(metric, plain)}, slices.ContainsFunc(cells, known)
}

func ratioLegend(r *analysis.Report) string {
	const quotient = "hey need not be a quotient of two rows."
	sliced := slicesInWords(r)
	if len(sliced) == 0 {
		return "Ratios are taken round by round and then summarized: t" + quotient
	}
	text := "Ratios compare slices with the baseline's right before and after them: " +
		strings.Join(sliced, ", ")
	if whole := visited(r); len(whole) > 0 {
		text += "; those of " + strings.Join(whole, ", ") + " are taken round by round"
	}
	return text + ". T" + quotient + unpairedWords(r)
}

// unpairedWords returns how far ratios would be off if the modes had not taken turns, or "" if
// unknown.
func unpairedWords(r *analysis.Report) string {
	if len(r.Unpaired) == 0 {
		return ""
	}
	var texts []string
	for _, u := range r.Unpaired {
		texts = append(texts, fmt.Sprintf("%s for %s (at most %s, %s; in turns ±%s)",
			inPercents(u.Off), u.Load, inPercents(u.Most), u.Row, inPercents(u.Width)))
	}
	return " Measured one after the other instead of in turns, modes would have ratios that are off by " +
		strings.Join(texts, ", and by ") + "."
}

func inPercents(x float64) string {
	const few = 0.0995
	if x < few {
		return fmt.Sprintf("%.1f %%", percent*x)
	}
	return fmt.Sprintf("%.0f %%", percent*x)
}

// slicesInWords returns text such as "bulk and rr in 12 epochs of slices of 4 ms".
func slicesInWords(r *analysis.Report) []string {
	var texts []string
	loads := map[string][]string{}
	for _, l := range r.Plan.Loads {
		n := epochs(r, l.Kind)
		if l.Slice == 0 || n == 0 {
			continue
		}
		text := fmt.Sprintf(" in %s of slices of %g ms", units.Plural(n, "epoch"), milli*l.Slice)
		if loads[text] == nil {
			texts = append(texts, text)
		}
		if !slices.Contains(loads[text], l.Kind) { // a sweep has a load for each point
			loads[text] = append(loads[text], l.Kind)
		}
	}
	for i, text := range texts {
		texts[i] = strings.Join(loads[text], " and ") + text
	}
	return texts
}

func epochs(r *analysis.Report, load string) int {
	n := 0
	for _, c := range r.Cells {
		if c.Load == load {
			n = max(n, len(c.Metrics[c.Primary].Rounds))
		}
	}
	return n
}

func visited(r *analysis.Report) []string {
	return analysis.Distinct(slices.DeleteFunc(slices.Clone(r.Cells), func(c analysis.Cell) bool {
		return r.Plan.Loads.Of(c.Load).Slice > 0
	}),
		func(c analysis.Cell) string { return c.Load })
}
