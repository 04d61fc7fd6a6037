package sentence

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// mostBrief is the number of sentences that a summary has of an answer on streams.
const mostBrief = 4

// weights lists the findings whose sentences a summary leaves out first, in this order. If that is
// not enough, it leaves out sentences from the end of the answer.
var weights = []string{endpoints.Attachable, endpoints.NoSuspect, endpoints.ProxyFree,
	endpoints.Proxied, endpoints.ProxiedAlone, endpoints.Connecting, endpoints.Divided}

// item is a sentence of an answer, and the code of the finding with which it begins.
type item struct{ code, text string }

// brief returns the sentences of an answer on streams that a summary shows, or nil for all of them.
// If those on what is to blame over each route are too many, they become one. codes are those of
// the findings.
func (w *writer) brief(all, codes []string) (out []string) {
	streams := func(c analysis.Cell) bool { return c.Load == workload.Chat }
	if w.r.Study != sample.StudyEndpoints || len(all) <= mostBrief ||
		!slices.ContainsFunc(w.r.Cells, streams) {
		return nil
	}
	var answer []item
	for i, text := range all {
		answer = append(answer, item{codes[i], text})
	}
	drop := func(code string) {
		for i := len(answer) - 1; i >= 0 && len(answer) > mostBrief; i-- {
			if code == "" || answer[i].code == code {
				answer = slices.Delete(answer, i, i+1)
			}
		}
	}
	for _, code := range weights {
		drop(code)
	}
	if len(answer) > mostBrief {
		answer = w.joined(answer)
	}
	drop("")
	for _, s := range answer {
		out = append(out, s.text)
	}
	return out
}

// joined makes what packets show of each route one sentence.
func (w *writer) joined(answer []item) []item {
	of := []string{endpoints.PartBlamed, endpoints.NoPartBlamed, endpoints.PacketsUnclear}
	one := func(s item) bool { return slices.Contains(of, s.code) }
	first := slices.IndexFunc(answer, one)
	if first < 0 || !slices.ContainsFunc(answer[first+1:], one) {
		return answer
	}
	var who []string
	over := map[string][]string{}
	for fs := range alike(w.r.Found) {
		if !slices.Contains(of, fs[0].Code) {
			continue
		}
		c := w.cells(fs[0])[0]
		name, amount := "no verdict", ""
		if fs[0].Code != endpoints.PacketsUnclear {
			name, amount = partsOf(c).who(), partsOf(c).amount()
		}
		if over[name] == nil {
			who = append(who, name)
		}
		over[name] = append(over[name], c.Label()+amount)
	}
	var say []string
	for _, name := range who {
		say = append(say, name+", over "+printable.List(over[name]))
	}
	answer[first].text = printable.Capital(strings.Join(say, "; ")) + "."
	rest := slices.DeleteFunc(answer[first+1:], one)
	return answer[:first+1+len(rest)]
}

// amount returns how much of the time to the last token is that of the parts that are to blame, or
// of the time to the first token if only that is long; "" if none is.
func (w parts) amount() string {
	blamed := parts{endpoints.Division{Evidence: &sample.Evidence{Parts: w.Blamed()}}}
	first, last := blamed.Sum(endpoints.First), blamed.Sum(endpoints.Last)
	switch {
	case len(blamed.Parts) == 0:
		return ""
	case last < w.little():
		return fmt.Sprintf(" (%s of %s to the first token)", workload.Briefly(first),
			workload.Briefly(w.Sum(endpoints.First)))
	}
	return fmt.Sprintf(" (%s of %s)", workload.Briefly(last),
		workload.Briefly(w.Sum(endpoints.Last)))
}
