package endpoints

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// exchanged returns where the time of an exchange goes over each route, and, as unclear, why that is
// not known over the others.
func exchanged(r *analysis.Report) (out, unclear []string) {
	var unknown reasons
	noun := "request"
	for _, c := range r.Cells {
		switch c.Load {
		case workload.Chat, workload.Batch:
			continue
		case workload.SQL:
			noun = "query"
		}
		if c.Evidence == nil {
			unknown.add(c.Facts[sample.FactExchangesUnseen], c.Label())
			continue
		}
		if why, ok := c.Evidence.Clear(); !ok {
			unknown.add(why, c.Label())
			continue
		}
		w := division{c.Evidence}
		say := append([]string{fmt.Sprintf("Over %s, of %s a %s as captured: %s", c.Label(),
			workload.Briefly(w.sum(last)), noun, w.list(last, workload.Briefly))},
			w.waits("replies", w.Responses/fewReplies)...)
		out = append(out, strings.Join(say, "; ")+".")
	}
	return out, unknown.sentences("Where the time of a " + noun + " goes is unknown over %s: %s.")
}

// traceable returns a sentence that names the command that divides requests further, or "" unless
// packets showed the routes' servers: only then it would run here.
func traceable(r *analysis.Report) string {
	var words []string
	for _, c := range r.Cells {
		if c.Load == workload.Batch || c.Facts["from"] != "" || !c.Proven() {
			continue
		}
		if c.Load != workload.Exec { // toll would need a login, or a prompt
			return fmt.Sprintf("sudo toll trace --attach %s watches other clients' requests, part by part.",
				c.Dial)
		}
		word := c.Dial
		if name := c.Label(); name != word {
			word = name + "=" + c.Dial
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("sudo toll trace %s compares them part by part, with GET or PING.",
		strings.Join(words, " "))
}

// fewReplies is the number of replies of which one that waits in the server's TCP is mentioned.
const fewReplies = 20

// reasons groups routes by a reason.
type reasons struct {
	order []string
	by    map[string][]string
}

// add adds a route. It ignores an empty reason.
func (x *reasons) add(why, route string) {
	if why == "" {
		return
	}
	if x.by == nil {
		x.by = map[string][]string{}
	}
	if x.by[why] == nil {
		x.order = append(x.order, why)
	}
	x.by[why] = append(x.by[why], route)
}

// sentences returns a sentence for each reason. format has the routes and the reason.
func (x *reasons) sentences(format string) (out []string) {
	for _, why := range x.order {
		out = append(out, fmt.Sprintf(format, printable.List(x.by[why]), why))
	}
	return out
}
