package view

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// drawn has what the reader has seen before a route.
type drawn struct {
	answer string
	before [][]ports.Hop
	whole  bool // each hop is drawn
}

// together groups routes that look the same.
func (d *drawn) together(all []dial) (out [][]dial) {
	if !d.whole {
		return alike(all)
	}
	for _, one := range all {
		out = append(out, []dial{one})
	}
	return out
}

// brief returns a route in one paragraph: without the links that it crosses if it is answered, and
// with those from which on it is lost.
func (d *drawn) brief(path ports.Path, to []string) string {
	parts := []string{"connects to " + orList(to)}
	for _, h := range path.Hops {
		switch {
		case isLink(h) && (path.Answers() || h.Kind == "veth" || len(parts) == 1):
		case slices.Contains([]string{"proxy", "server", "socket", "shortcut"}, h.Kind):
			parts = append(parts, h.Text)
		default:
			parts = append(parts, h.Kind+" "+h.Text)
		}
	}
	if ends := d.ends(path); ends != "" {
		parts = append(parts, "╳ "+ends)
	}
	return strings.Join(parts, " → ")
}

func answerText(r *ports.Report) string {
	if r.Answer == nil {
		return ""
	}
	return strings.Join(r.Answer.Text, "\n")
}

// rest returns the number of hops, from a route's end, that an earlier route ends with, too.
func (d *drawn) rest(hops []ports.Hop) (most int) {
	for _, other := range d.before {
		n := 0
		for n < min(len(hops), len(other)) && hops[len(hops)-1-n] == other[len(other)-1-n] {
			n++
		}
		most = max(most, n)
	}
	return most
}

// ends returns the words for why a route ends, without what the answer and the route say.
func (d *drawn) ends(p ports.Path) string {
	words := p.Why.Words
	for _, h := range p.Hops {
		if rest, ok := strings.CutPrefix(words, "DNAT "+h.Text+", then "); ok && h.Kind == "DNAT" {
			words = rest
		}
	}
	if brief, _, ok := strings.Cut(words, ": "); ok && strings.Contains(d.answer, words) {
		words = brief
	}
	return words
}

// told reports whether the answer has each command of a remedy, in a line of its own.
func (d *drawn) told(p ports.Path) bool {
	if p.Trial == nil || len(p.Trial.Commands) == 0 {
		return false
	}
	lines := strings.Split(d.answer, "\n")
	return !slices.ContainsFunc(p.Trial.Commands, func(c ports.Command) bool {
		return !slices.Contains(lines, c.Text)
	})
}

func (d *drawn) routes(dials []dial, who string) (out document.Section) {
	path := dials[0].path
	head := document.Plainly(who+": ").Then(kindText(path), document.Strong)
	if len(path.Servers) > 1 {
		head = head.Then("; in turn "+strings.Join(path.Servers, ", ")+" answer", document.Plain)
	}
	hops, to, seen := approaches(dials)
	if unserved(path) { // there is no route to draw
		out.Add(document.Paragraph{Level: 1, Text: head.Then(", no socket listens on "+orList(to),
			document.Plain)})
		return out
	}
	out.Add(document.Paragraph{Level: 1, Text: head})
	if !d.whole {
		out.Add(paragraph(2, d.brief(path, to)+d.sees(path, seen)))
		return d.conclude(out, path)
	}
	route := document.Route{Level: 2, Ends: d.ends(path),
		Steps: []document.RoutePoint{{Kind: "client",
			Text: document.Plainly("connects to " + orList(to))}}}
	known := min(d.rest(path.Hops), len(hops))
	if len(hops) > 0 && hops[0].Kind == "by" {
		known = min(known, len(hops)-1)
	}
	d.before = append(d.before, path.Hops)
	for i, h := range hops {
		text := h.Text
		as := known > 2 && i == len(hops)-known
		if as {
			text += ", and on as above"
		}
		route.Steps = append(route.Steps, document.RoutePoint{Kind: h.Kind, Text: document.Plainly(text)})
		if as {
			break
		}
	}
	out.Add(route)
	if text := d.sees(path, seen); text != "" {
		out.Add(document.Paragraph{Level: 2,
			Text: document.Text{{Text: text, Style: document.Faint}}})
	}
	return d.conclude(out, path)
}

// sees returns which client's address the server sees, as a sentence or, if the route is brief, as
// what follows it. It returns "" if the route says so, if it is not known, and in brief if it is
// the client's own.
func (d *drawn) sees(path ports.Path, seen []string) string {
	either := func(brief, whole string) string {
		if d.whole {
			return whole
		}
		return brief
	}
	switch {
	case path.Why.Words != "" || masqueradedByHop(path):
	case hidden(path):
		return either("; it sees "+orList(seen)+", not the client's address",
			"The server sees "+orList(seen)+" instead of the client's address.")
	case path.Masqueraded:
		return either("; it does not see the client's address",
			"The server does not see the client's address.")
	case len(seen) > 0:
		return either("", "The server sees the client's address.")
	}
	return ""
}

// masqueradedByHop reports whether a hop of the path says which address the server sees.
func masqueradedByHop(p ports.Path) bool {
	return slices.ContainsFunc(p.Hops, func(h ports.Hop) bool { return h.Kind == "MASQ" })
}

// conclude adds what follows a route: its remedy, what is not known, exceptions and costs.
func (d *drawn) conclude(out document.Section, path ports.Path) document.Section {
	if path.Remedy != "" && !d.told(path) {
		out.Add(remedyBlocks(2, path.Remedy)...)
	}
	for _, d := range path.Doubt {
		if isUntried(d) {
			continue // checks reports this for all paths
		}
		out.Add(paragraph(2, "not known: "+d.Words))
	}
	for _, d := range path.Depends {
		out.Add(paragraph(2, "does not apply to "+d))
	}
	if len(path.Cost) > 0 {
		var parts []string
		for _, x := range path.Cost {
			parts = append(parts, x.Load+" "+metricName(x.Metric)+" "+x.Text)
		}
		out.Add(document.Paragraph{Level: 2, Text: document.Text{{
			Text: "cost: " + strings.Join(parts, "; "), Style: document.Faint}}})
	}
	return out
}
