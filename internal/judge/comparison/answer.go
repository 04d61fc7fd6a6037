package comparison

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// answer is what most readers came for.
func (j study) answer(r *analysis.Report) *analysis.Answer {
	six := j.overIPv6()
	a := answerOf(r, len(six) > 0)
	if a == nil {
		return nil
	}
	const most = 3
	if len(six) > 0 {
		a.Question = "What does IPv6 cost against IPv4?"
		a.Text = slices.Insert(a.Text, 0, six[:min(2*most, len(six))]...)
	}
	var more []string
	for _, from := range analysis.Placements(r.Cells) {
		if s := j.streamFinding(from); s != "" {
			more = append(more, s)
		}
	}
	for _, said := range [][]string{j.tuneGains(), j.againstLab()} {
		more = append(more, said[:min(most, len(said))]...)
	}
	last := len(a.Text) // before what is uncertain
	if uncertain(r.Cells) != "" {
		last--
	}
	a.Text = slices.Insert(a.Text, last, more...)
	return a
}

// AnswerOf is what the judged cells answer; nil if there are none. It claims no more than
// the verdicts do: modes that are not told apart are named together.
func AnswerOf(r *analysis.Report) *analysis.Answer { return answerOf(r, false) }

// answerOf is the same; otherwise says that the question is not whether to use the machine's network.
func answerOf(r *analysis.Report, otherwise bool) *analysis.Answer {
	if len(r.Cells) == 0 {
		return nil
	}
	all := placesOf(r)
	a := &analysis.Answer{Question: "What does each mode cost?", Text: []string{}}
	add := a.Add
	asked := !otherwise && r.Plan.Baseline == string(mode.Host) && len(all) > 0 &&
		!slices.ContainsFunc(all, func(p place) bool { return len(p.isolated()) == 0 })
	if asked {
		a.Question = questionOf(all)
	}
	for _, p := range all {
		head := p.head(all)
		if asked {
			said := map[string]bool{}
			add(head + p.host(said))
			if text := p.published(said); text != "" {
				add(head + text)
			}
			continue
		}
		for _, s := range p.byLoad() {
			add(head + s)
		}
	}
	add(limits(r.Cells))
	add(uncertain(r.Cells))
	return a
}

// own is the mode host in the words of who built the place. Those of Docker Engine and the lab are the default.
func (p place) own() string {
	if p.on == sample.Kubernetes {
		return "hostNetwork: true"
	}
	return "--network host"
}

// questionOf is what most readers came with, in the words of the engine that they have.
func questionOf(all []place) string {
	on := func(name string) bool { return slices.ContainsFunc(all, func(p place) bool { return p.on == name }) }
	switch {
	case on(sample.Kubernetes):
		return "Should your pods use hostNetwork: true?"
	case on(sample.Swarm):
		return "Should your services use --network host?"
	}
	return "Should you use --network host?"
}

// place is the cells that are compared with one baseline, by route.
type place struct {
	r        *analysis.Report
	from, on string
	routes   []route
}

// route is a mode's cells at one target: one for each load.
type route struct {
	mode   mode.Mode
	phrase string
	cells  []analysis.Cell
}

// placesOf are the cells that have a ratio, without tuned ones and crowds.
func placesOf(r *analysis.Report) []place {
	var out []place
	for _, c := range r.Cells {
		m, known := mode.Find(mode.Name(c.Mode))
		if c.Baseline || c.Tune != "" || c.Shape.Crowd() || !known || c.Metrics[c.Primary].Ratio == nil {
			continue
		}
		at := slices.IndexFunc(out, func(p place) bool { return p.from == c.From && p.on == c.On })
		if at < 0 {
			at = len(out)
			out = append(out, place{r: r, from: c.From, on: c.On})
		}
		phrase := m.Phrase(mode.Placement(c.From), mode.Target(c.To), "")
		i := slices.IndexFunc(out[at].routes, func(x route) bool { return x.phrase == phrase })
		if i < 0 {
			i = len(out[at].routes)
			out[at].routes = append(out[at].routes, route{mode: m, phrase: phrase})
		}
		out[at].routes[i].cells = append(out[at].routes[i].cells, c)
	}
	return out
}

// head says of which place a sentence is, where there are several.
func (p place) head(all []place) string {
	var parts []string
	if slices.ContainsFunc(all, func(o place) bool { return o.on != p.on }) {
		parts = append(parts, "on "+p.on)
	}
	if slices.ContainsFunc(all, func(o place) bool { return o.from != p.from }) {
		parts = append(parts, "from "+mode.Placement(p.from).Words())
	}
	if len(parts) == 0 {
		return ""
	}
	return printable.Capital(strings.Join(parts, ", ") + ": ")
}

// isolated are the routes of modes in which a container's ports are its own, and which
// have all loads.
func (p place) isolated() []route {
	loads := 0
	for _, x := range p.routes {
		loads = max(loads, len(x.cells))
	}
	return slices.DeleteFunc(slices.Clone(p.routes), func(x route) bool { return !x.mode.PortIsolation || len(x.cells) < loads })
}

// host says what --network host saves, against the modes with port isolation that cost
// least.
func (p place) host(said map[string]bool) string {
	all := p.isolated()
	var free, open []route
	for _, x := range all {
		switch x.verdict() {
		case stats.Same, stats.Better:
			free = append(free, x)
		case stats.Unclear:
			open = append(open, x)
		}
	}
	switch {
	case len(free) > 0:
		note(said, free)
		text := "No. " + names(free) + " " + are(free) + " as fast as " + p.own() + ", and " + isolate(free) + " ports"
		if same := p.r.Plan.Same; same > 0 {
			text += fmt.Sprintf(" (the same within %g %%, or better)", 100*same)
		}
		return text + "."
	case len(open) > 0:
		least := cheapest(open)[0]
		note(said, []route{least})
		return fmt.Sprintf("Not certain yet. Among modes with port isolation, %s seems to cost least: it %s.", least.phrase, least.clauses(p.r))
	}
	best := cheapest(all)
	note(said, best)
	if len(best) > 1 {
		return fmt.Sprintf("%s Among modes with port isolation, %s cost least and cannot be told apart: %s %s.",
			lead(best[0]), names(best), best[0].phrase, best[0].clauses(p.r))
	}
	return fmt.Sprintf("%s Among modes with port isolation, %s costs least: it %s.", lead(best[0]), names(best), best[0].clauses(p.r))
}

// lead answers for a route that costs something.
func lead(x route) string {
	text := "It is faster."
	for _, c := range x.cells {
		switch c.Verdict() {
		case stats.Better:
			return "That depends on the load."
		case stats.Same, stats.Unclear:
			text = "It is faster in part."
		}
	}
	return text
}

// note remembers of which routes something was said.
func note(said map[string]bool, xs []route) {
	for _, x := range xs {
		said[x.phrase] = true
	}
}

// published says what the usual ways to publish a port cost, each at its first target.
func (p place) published(said map[string]bool) string {
	var say []string
	for _, w := range []struct {
		name  mode.Name
		words string
	}{
		{mode.PublishNAT, "through NAT"}, {mode.PublishProxy, "through docker-proxy"}, {mode.Fast, "with toll fast"}, {mode.PublishIngress, "through the routing mesh"},
	} {
		x, ok := p.usual(w.name)
		if !ok || said[x.phrase] {
			continue
		}
		say = append(say, w.words+" it "+x.clauses(p.r))
	}
	for _, x := range p.routes {
		if (x.mode.Name == mode.Publish || x.mode.Name == mode.PublishDefault) && !said[x.phrase] {
			say = append(say, x.phrase+" "+taker(x)+" "+x.clauses(p.r))
		}
	}
	if len(say) == 0 {
		return ""
	}
	return "A published port (-p): " + strings.Join(say, "; ") + "."
}

// taker is who takes the connections of a published port.
func taker(x route) string {
	if slices.Contains(x.cells[0].Hops, string(mode.HopProxy)) {
		return "through docker-proxy"
	}
	return "through NAT"
}

// usual is a mode's route to 127.0.0.1, or its first.
func (p place) usual(name mode.Name) (x route, ok bool) {
	for _, r := range p.routes {
		switch {
		case r.mode.Name != name:
		case r.cells[0].To == string(mode.ToLoopback):
			return r, true
		case !ok:
			x, ok = r, true
		}
	}
	return x, ok
}

// byLoad says of each load which modes differ from the baseline, and in what direction.
func (p place) byLoad() []string {
	var out []string
	for _, l := range p.r.Plan.Loads {
		var all []analysis.Judged
		noun, to := "", ""
		for _, x := range p.routes {
			for _, c := range x.cells {
				if c.Load != l.Kind {
					continue
				}
				ratio := c.Metrics[c.Primary].Ratio
				noun, to = p.r.NounOf(c), ratio.To
				said := analysis.Judged{Name: x.phrase, Verdict: c.Verdict(), Ratio: ratio}
				if cpu := c.Metrics[workload.CPUPerByte].Ratio; c.FillsLink() && cpu != nil {
					said.Name, said.Ratio = fmt.Sprintf("%s (fills %s, with %s of the CPU time)", x.phrase, c.Link(), cpu.Percent()), nil
				}
				all = append(all, said)
			}
		}
		if noun != "" {
			out = append(out, fmt.Sprintf("%s, of %s's: %s.", printable.Capital(noun), to, analysis.ByVerdict(all)))
		}
	}
	return out
}

// cheapest are the route with the smallest geometric mean of tolls and those that no load
// tells apart from it.
func cheapest(all []route) []route {
	mean := func(x route) float64 {
		sum := 0.0
		for _, c := range x.cells {
			sum += math.Log(c.Toll())
		}
		return sum / float64(len(x.cells))
	}
	best := slices.MinFunc(all, func(a, b route) int { return cmp.Compare(mean(a), mean(b)) })
	out := []route{best}
	for _, x := range all {
		if x.phrase != best.phrase && x.overlaps(best) {
			out = append(out, x)
		}
	}
	return out
}

// overlaps reports whether the intervals of all loads do.
func (x route) overlaps(o route) bool {
	for i, c := range x.cells {
		a, b := c.Metrics[c.Primary].Ratio, o.cells[i].Metrics[o.cells[i].Primary].Ratio
		if o.cells[i].Load != c.Load || a.Low > b.High || b.Low > a.High {
			return false
		}
	}
	return true
}

// verdict is the worst of a route's loads.
func (x route) verdict() stats.Verdict {
	order := []stats.Verdict{stats.Worse, stats.Unclear, stats.Same, stats.Better}
	at := len(order) - 1
	for _, c := range x.cells {
		if i := slices.Index(order, c.Verdict()); i >= 0 {
			at = min(at, i)
		}
	}
	return order[at]
}

// clauses say what a route has of the baseline, one for each load.
func (x route) clauses(r *analysis.Report) string {
	var say []string
	for _, c := range x.cells {
		say = append(say, r.Clause(c))
	}
	return strings.ReplaceAll(strings.Join(say, " and "), " and has ", " and ")
}
