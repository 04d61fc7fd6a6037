package published

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
)

// answer says which findings hold here. A finding holds if every ratio of it that was
// measured and is clear does.
func (r *Report) answer() analysis.Answer {
	a := analysis.Answer{Question: "Does what others published hold here?", Text: []string{}}
	var hold, not []string
	unclear, missing, all := 0, 0, 0
	for _, s := range r.Studies {
		for _, f := range s.Findings {
			all++
			against := f.Verdicts[Gone] + f.Verdicts[Reversed] + f.Verdicts[Emerged]
			switch {
			case against > 0 && f.Verdicts[Holds] == 0:
				not = append(not, f.Text+" ("+verdictsOf(f)+")")
			case against > 0:
				not = append(not, f.Text+" (in part: "+verdictsOf(f)+")")
			case f.Verdicts[Holds] > 0:
				hold = append(hold, f.Text)
			case f.Verdicts[Unclear] > 0:
				unclear++
			default:
				missing++
			}
		}
	}
	if len(r.Files) == 0 {
		a.Add("Nothing is compared yet. The commands below measure the same here; --against takes the files that they save.")
		return a
	}
	if len(hold) > 0 {
		a.Add(fmt.Sprintf("%d of %d findings %s: %s.", len(hold), all, form(len(hold), "holds", "hold"), strings.Join(hold, "; ")))
	}
	if len(not) > 0 {
		a.Add(fmt.Sprintf("%d %s not: %s.", len(not), form(len(not), "does", "do"), strings.Join(not, "; ")))
	}
	if unclear > 0 {
		a.Add(fmt.Sprintf("%d %s unclear: a longer run (--budget) or a quieter machine decides.", unclear, form(unclear, "is", "are")))
	}
	if missing > 0 {
		a.Add(fmt.Sprintf("%d %s not measured: the commands below would.", missing, form(missing, "is", "are")))
	}
	return a
}

// verdictsOf are a finding's verdicts with their numbers: "gone 2, holds 1".
func verdictsOf(f Finding) string {
	var say []string
	for _, v := range verdicts {
		if n := f.Verdicts[v]; n > 0 && v != NotMeasured {
			say = append(say, fmt.Sprintf("%s %d", v, n))
		}
	}
	return strings.Join(say, ", ")
}

func form(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
