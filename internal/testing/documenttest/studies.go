package documenttest

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/judge/published"
)

// published returns the findings of published comparisons that their ratios contradict.
func (r judged) published() (out []string) {
	if len(r.Files) == 0 {
		return nil
	}
	for _, s := range r.Studies {
		for k, f := range s.Findings {
			if why := supported(s, k); why != "" {
				out = append(out, fmt.Sprintf("%s: %s, but %s", f.Text, f.Verdict, why))
			}
		}
	}
	return out
}

// supported returns how the verdicts of a finding's ratios and claims contradict its own, or "".
func supported(s published.Result, i int) string {
	count := map[published.Verdict]int{}
	all := 0
	add := func(finding int, v published.Verdict) {
		if finding == i {
			count[v]++
			all++
		}
	}
	for _, l := range s.Rows {
		for _, x := range l.Ratios {
			add(x.Finding, x.Verdict)
		}
	}
	for _, c := range s.Claims {
		add(c.Finding, c.Verdict)
	}
	hold, against := count[published.Holds],
		count[published.Gone]+count[published.Reversed]+count[published.Emerged]
	fits := true
	switch s.Findings[i].Verdict {
	case published.Holds: // all, or most of them
		fits = 2*hold > all
	case published.Fails:
		fits = against > 0
	case published.Partly:
		fits = against > 0 && hold > 0
	case published.Unclear:
		fits = count[published.Unclear] > 0 || against > 0
	case published.Incomplete:
		fits = count[published.NotMeasured] > 0
	case published.NotMeasured:
		fits = count[published.NotMeasured] == all
	}
	if fits {
		return ""
	}
	return fmt.Sprintf("its ratios are %v", count)
}
