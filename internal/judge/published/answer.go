package published

import (
	"fmt"
	"slices"
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

// Finding is a statement of a study, the number of its ratios with each verdict, and the resulting
// verdict.
type Finding struct {
	Text     string          `json:"text"`
	Verdict  Verdict         `json:"verdict,omitempty"` // "": nothing is compared
	Verdicts map[Verdict]int `json:"verdicts"`
	// Notes name conditions that may decide the finding and differ from the study's.
	Notes []string `json:"notes,omitempty"`
}

const (
	Fails      Verdict = "does not hold"
	Partly     Verdict = "holds in part"    // some of its ratios hold and others do not
	Incomplete Verdict = "measured in part" // its measured part, at least one ratio, holds
)

func (f *Finding) note(datapath string) {
	if datapath == "" {
		return
	}
	text := "measured on another datapath of Open vSwitch: " + datapath
	if !slices.Contains(f.Notes, text) {
		f.Notes = append(f.Notes, text)
	}
}

// verdict returns the verdict on the finding. It holds if all of its ratios hold or, with mostly
// set, more than half.
func (f Finding) verdict(mostly bool) Verdict {
	all := 0
	for _, n := range f.Verdicts {
		all += n
	}
	hold, missing, against := f.Verdicts[Holds], f.Verdicts[NotMeasured], f.against()
	switch {
	case all == 0:
		return ""
	case missing == all:
		return NotMeasured
	case hold == all, mostly && 2*hold > all:
		return Holds
	case mostly && 2*hold > all-missing:
		return Incomplete
	case mostly && 2*against < all:
		return Unclear
	case against > 0 && hold == 0, mostly:
		return Fails
	case against > 0:
		return Partly
	case f.Verdicts[Unclear] > 0:
		return Unclear
	}
	return Incomplete
}

func (f Finding) against() int {
	return f.Verdicts[Gone] + f.Verdicts[Reversed] + f.Verdicts[Emerged]
}

// Tally returns the number of ratios for each verdict, such as "holds 2, unclear 1 of 3 ratios",
// the verdict of a single ratio, or "" if all have the finding's own.
func (f Finding) Tally() string {
	var parts []string
	all, last := 0, Verdict("")
	for _, v := range verdicts {
		if n := f.Verdicts[v]; n > 0 {
			parts, last = append(parts, fmt.Sprintf("%s %d", v, n)), v
			all += n
		}
	}
	switch {
	case f.Verdicts[f.Verdict] == all:
		return ""
	case all < 2:
		return string(last)
	}
	return fmt.Sprintf("%s of %d ratios", strings.Join(parts, ", "), all)
}
