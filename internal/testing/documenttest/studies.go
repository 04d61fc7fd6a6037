package documenttest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
)

var (
	atFault = regexp.MustCompile(
		`^(?:Slow link: |A link that loses packets: )?(.*?) (?:is|are|loses|lose) (?:slow|packets)(?: and loses? packets)?(?: to the others)?: `)
	costFault = regexp.MustCompile(
		`^Slow .*? (?:between|from|on all links of|on what) (.*?)(?: sends| receives)?: `)
	withoutAny = regexp.MustCompile(`^Without a result: (\d+) pair`)
	doubtful   = regexp.MustCompile(`^\d+ links? (?:was|were) slow or lost packets`)
)

// faults checks the named nodes and links, or that there are none.
func (r judged) faults(sentence string) []string {
	if r.Mesh == nil {
		return nil
	}
	all := slices.Clone(r.Mesh.Faults)
	failed, uncertain := r.Mesh.Failed, r.Mesh.Doubtful+r.Mesh.DoubtfulLoss
	if r.Mesh.Beside != nil {
		all = slices.Clone(r.Mesh.Beside.Faults)
		for _, c := range r.Mesh.Costs {
			all = append(all, c.Faults...)
		}
	}
	named := func(who string) bool {
		return slices.ContainsFunc(all, func(f mesh.Fault) bool {
			if strings.HasSuffix(who, " others") {
				return strings.Contains(who, f.Nodes[0])
			}
			return !slices.ContainsFunc(f.Nodes, func(n string) bool {
				return !strings.Contains(who, n)
			})
		})
	}
	pairs := len(slices.DeleteFunc(slices.Clone(failed), func(f mesh.Failed) bool {
		return len(f.Nodes) == 1
	}))
	never := func(f mesh.Failed) bool {
		return len(f.Nodes) == 1 && strings.HasPrefix(sentence, f.Nodes[0]+" ")
	}
	switch at, cost := atFault.FindStringSubmatch(sentence), costFault.FindStringSubmatch(
		sentence); {
	case cost != nil && !named(cost[1]), cost == nil && at != nil && !named(at[1]):
		return []string{"there is no such fault"}
	case withoutAny.MatchString(sentence) &&
		withoutAny.FindStringSubmatch(sentence)[1] != strconv.Itoa(pairs):
		return []string{fmt.Sprintf("%d pairs are", pairs)}
	case (strings.Contains(sentence, " never answered") ||
		strings.Contains(sentence, " left in the middle")) && !slices.ContainsFunc(failed, never):
		return []string{"it did not fail"}
	case doubtful.MatchString(sentence) && uncertain == 0:
		return []string{"no link is doubtful"}
	case strings.Contains(sentence, "o node or link stands out") ||
		strings.Contains(sentence, "othing else stands out") ||
		strings.HasPrefix(sentence, "Neither direction"):
		if len(all) > 0 {
			return []string{fmt.Sprintf("there are %d faults", len(all))}
		}
	}
	return nil
}

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
