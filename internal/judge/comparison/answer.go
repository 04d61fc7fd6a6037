package comparison

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

func (j study) answer(r *analysis.Report) *analysis.Answer {
	six := j.overIPv6()
	a := AnswerOf(r, len(six) > 0)
	if a == nil {
		return nil
	}
	const most = 3
	if len(six) > 0 {
		a.Question = "What does IPv6 cost against IPv4?"
		a.Text = slices.Insert(a.Text, 0, six[:min(2*most, len(six))]...)
	}
	more := j.relays(r)
	for _, from := range analysis.Placements(r.Cells) {
		if s := j.streamFinding(from); s != "" {
			more = append(more, s)
		}
	}
	for _, said := range [][]string{j.tuneGains(), j.againstLab()} {
		more = append(more, said[:min(most, len(said))]...)
	}
	last := len(a.Text)
	if uncertain(r) != "" {
		last--
	}
	a.Text = slices.Insert(a.Text, last, more...)
	if len(a.Text) == 0 {
		a.Add(alone(r))
	}
	for _, w := range r.Warnings {
		if said, _, _ := strings.Cut(w.Text, ". "); w.Code == "busy" {
			if uncertain(r) != "" { // for the same reason
				a.Text = a.Text[:len(a.Text)-1]
			}
			a.Text = slices.Insert(a.Text, 0, printable.Capital(strings.TrimSuffix(said, "."))+".")
		}
	}
	return a
}

// alone says why nothing is compared.
func alone(r *analysis.Report) string {
	names := printable.List(analysis.Distinct(r.Cells, analysis.Cell.Label))
	if len(r.Failed)+len(r.Skipped) > 0 {
		return "Nothing is compared: only " + names + " has a result."
	}
	return "Nothing is compared: only " + names + " was measured. Name a mode to compare it with."
}

// AnswerOf returns the answer of the judged cells, or nil without cells. It claims no more than the
// verdicts do. otherwise is set for a question other than the choice of a mode.
func AnswerOf(r *analysis.Report, otherwise bool) *analysis.Answer {
	if len(r.Cells) == 0 {
		return nil
	}
	all := placesOf(r)
	a := &analysis.Answer{Question: "What does each mode cost?", Text: []string{}}
	advised := !otherwise && r.Plan.Baseline == string(mode.Host) && len(all) > 0 &&
		!slices.ContainsFunc(all, func(p place) bool { return len(p.advice()) == 0 })
	if advised {
		a.Question = "Which network mode, by " + printable.List(nouns(r)) + "?"
	}
	for _, p := range all {
		head, said := p.head(all), p.byLoad()
		if advised {
			said = p.advice()
		}
		if head != "" && len(said) > 0 && advised {
			a.Add(head + lower(strings.Join(said, " ")))
			continue
		}
		for _, s := range said {
			a.Add(head + s)
		}
	}
	a.Add(limits(r.Cells))
	a.Add(uncertain(r))
	return a
}

func nouns(r *analysis.Report) []string { return analysis.Distinct(r.Cells, r.NounOf) }

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

type place struct {
	r      *analysis.Report
	from   mode.Placement
	on     string
	routes []route
	paced  bool // the answer has named the machine's pacing
}

type route struct {
	mode  mode.Mode
	label string
	cells []analysis.Cell
}

// placesOf groups the cells that have a ratio by place and route, without tuned cells and crowds.
func placesOf(r *analysis.Report) []place {
	var out []place
	for _, c := range r.Cells {
		m, known := mode.Find(c.Mode)
		if c.Baseline || c.Tune != "" || c.Shape.Crowd() || !known ||
			c.Metrics[c.Primary].Ratio == nil {
			continue
		}
		at := slices.IndexFunc(out, func(p place) bool { return p.from == c.From && p.on == c.On })
		if at < 0 {
			at = len(out)
			out = append(out, place{r: r, from: c.From, on: c.On})
		}
		i := slices.IndexFunc(out[at].routes, func(x route) bool { return x.label == c.Label() })
		if i < 0 {
			i = len(out[at].routes)
			out[at].routes = append(out[at].routes, route{mode: m, label: c.Label()})
		}
		out[at].routes[i].cells = append(out[at].routes[i].cells, c)
	}
	return out
}

func (p place) head(all []place) string {
	var parts []string
	if slices.ContainsFunc(all, func(o place) bool { return o.on != p.on }) {
		parts = append(parts, "on "+p.on)
	}
	if slices.ContainsFunc(all, func(o place) bool { return o.from != p.from }) {
		parts = append(parts, "from "+p.from.Words())
	}
	if len(parts) == 0 {
		return ""
	}
	return printable.Capital(strings.Join(parts, ", ") + ": ")
}

func (p place) usual(name mode.Name) (x route, ok bool) {
	for _, r := range p.routes {
		switch {
		case r.mode.Name != name:
		case r.cells[0].To == mode.ToLoopback:
			return r, true
		case !ok:
			x, ok = r, true
		}
	}
	return x, ok
}

func (p place) byLoad() []string {
	var out []string
	for _, of := range analysis.Distinct(p.r.Cells, func(c analysis.Cell) string {
		return c.Load + "\x00" + c.Pin
	}) {
		var all []analysis.Judged
		noun, to := "", ""
		for _, x := range p.routes {
			for _, c := range x.cells {
				if c.Load+"\x00"+c.Pin != of {
					continue
				}
				ratio := c.Metrics[c.Primary].Ratio
				noun, to = p.r.NounOf(c)+p.r.Plan.SayPin(c.Pin), ratio.To
				said := analysis.Judged{Name: x.label, Verdict: c.Verdict(), Ratio: ratio}
				if cpu := c.Metrics[workload.CPUPerByte].Ratio; c.FillsLink() && cpu != nil {
					said.Name, said.Ratio = fmt.Sprintf(
						"%s (fills %s, with %s of the CPU time)", x.label, c.Link(), cpu), nil
				}
				all = append(all, said)
			}
		}
		if noun != "" {
			out = append(out, fmt.Sprintf("%s, of %s's: %s.", printable.Capital(noun), to,
				analysis.ByVerdict(all)))
		}
	}
	return out
}
