package published

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
)

func (r *Report) answer() analysis.Answer {
	a := analysis.Answer{Question: "Does what others published hold here?", Text: []string{}}
	if len(r.Files) == 0 {
		a.Add(
			"Nothing is compared yet. The commands below measure the same here; --against takes the files that they save.")
		return a
	}
	found := map[Verdict][]string{}
	all := 0
	for _, s := range r.Studies {
		for _, f := range s.Findings {
			all++
			text := f.Text
			if f.against() > 0 {
				text += " (" + f.Tally() + ")"
			}
			if len(f.Notes) > 0 {
				text += " [" + strings.Join(f.Notes, "; ") + "]"
			}
			found[f.Verdict] = append(found[f.Verdict], text)
		}
	}
	for _, x := range []struct {
		verdict   Verdict
		one, many string
		end       string // "": the findings are named
	}{
		{Holds, "holds", "hold", ""},
		{Fails, "does not hold", "do not hold", ""},
		{Partly, "holds in part", "hold in part", ""},
		{Unclear, "is unclear", "are unclear",
			"measure longer (--budget) or on a quieter machine"},
		{Incomplete, "is measured in part, and that holds", "are measured in part, and that holds",
			"the commands below measure the rest"},
		{NotMeasured, "is not measured", "are not measured", "see the commands below"},
	} {
		names := found[x.verdict]
		if len(names) == 0 {
			continue
		}
		of, end := "", x.end
		if len(a.Text) == 0 {
			of = fmt.Sprintf(" of %d %s", all, form(all, "finding", "findings"))
		}
		if end == "" {
			end = strings.Join(names, "; ")
		}
		a.Add(fmt.Sprintf("%d%s %s: %s.", len(names), of, form(len(names), x.one, x.many), end))
	}
	return a
}

func form(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
