package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Ports shows the programs that answer on ports, and for a single port each path: with details hop
// by hop, and all commands that measure it.
func Ports(r *ports.Report, details bool) document.Document {
	d := document.Document{Kind: document.PortList, JSON: r, Page: func() document.Page {
		title := "Who reaches each port"
		if r.Port != 0 {
			title = fmt.Sprintf("Who reaches port %d", r.Port)
		}
		return document.Page{Title: title, Command: "toll ports"}
	}}
	if compared := comparedSections(r); compared != nil {
		d.Sections = append(compared, missing(r)...)
		for _, x := range r.Expected {
			d.Conditions = append(d.Conditions, document.Condition{Text: x.Line,
				Holds: holdsStyles[x.Holds], Why: x.Because.Words})
		}
		return d
	}
	switch {
	case len(r.Ports)+len(r.Inside) == 0 && r.Port != 0:
		d.Sections = saying(fmt.Sprintf(
			"Nothing serves port %d: no socket listens, and no readable rule redirects it.",
			r.Port))
	case len(r.Ports)+len(r.Inside) == 0:
		d.Sections = saying(
			"No port answers: no socket listens, and no readable rule redirects a port.")
	case r.Port != 0:
		d.Sections = explain(r, details)
	default:
		d.Sections = portSections(r)
	}
	if r.Answer != nil {
		d.Sections = append([]document.Section{portsAnswer(r.Answer)}, d.Sections...)
	}
	d.Sections = append(d.Sections, costs(r)...)
	d.Sections = append(d.Sections, traps(r)...)
	d.Sections = append(d.Sections, missing(r)...)
	return d
}

// Holding has what holds now as conditions, which --expect can check later.
func Holding(r *ports.Report) document.Document {
	d := document.Document{Kind: document.PortList}
	for _, line := range r.ExpectNow() {
		d.Conditions = append(d.Conditions, document.Condition{Text: line, Holds: document.Good})
	}
	return d
}

var holdsStyles = map[ports.Holds]document.Style{ports.Yes: document.Good,
	ports.No: document.Bad, ports.Maybe: document.Doubtful}

// portsAnswer returns the section of an answer whose texts have lines of their own for commands,
// and for what follows them.
func portsAnswer(a *analysis.Answer) document.Section {
	out := document.Section{Title: document.Strongly(a.Question)}
	var items []string
	end := func() {
		if len(items) > 0 {
			out.Add(document.List{Topic: document.Answer, Items: items, Level: 1})
		}
		items = nil
	}
	for _, text := range a.Text {
		for i, line := range strings.Split(text, "\n") {
			switch {
			case i == 0 || len(items) == 0 && !ports.IsCommand(line):
				items = append(items, line)
			case ports.IsCommand(line):
				end()
				out.Add(document.Command{Line: line})
			default:
				items[len(items)-1] += " " + line
			}
		}
	}
	end()
	return out
}

func missing(r *ports.Report) []document.Section {
	if len(r.Missing) == 0 {
		return nil
	}
	var items []string
	for _, m := range r.Missing {
		items = append(items, without(m.What, m.Why, m.Remedy))
	}
	return []document.Section{list(document.Notes, "Not known", items)}
}

// comparedSections returns what --try, --expect or --against found, or nil without these.
func comparedSections(r *ports.Report) (out []document.Section) {
	if r.Expected != nil { // what the user asked
		var items []string
		for _, x := range r.Expected {
			text := string(x.Holds) + ": " + x.Line
			if x.Because.Words != "" {
				text += ": " + x.Because.Words
			}
			items = append(items, text)
		}
		out = append(out, list(document.Answer, "Who reaches what, as expected?", items))
	}
	switch {
	case r.Tried != nil:
		out = append(out, list(document.Answer, "What would change? Tried in a copy; this machine is "+
			"unchanged.", r.Tried.Text(r.Changes)))
		if r.Tried.Complain() {
			out = append(out, list(document.Notes, "What the commands printed", r.Tried.Lines()))
		}
	case r.Changes != nil && r.Expected == nil:
		out = append(out, list(document.Answer, "What changed since "+r.Changes.Since+"?",
			r.Changes.Text()))
	}
	return out
}

func saying(text string) []document.Section {
	return []document.Section{{Blocks: []document.Block{paragraph(0, text)}}}
}

const portsLegend = "Each route is for a client that dials the given address or the machine's " +
	"own; empty: not by this row's socket. "

// Names are cut to serverWidth columns if space is short, and to leastServer in narrow tables.
const serverWidth, leastServer = 22, 16

func portSections(r *ports.Report) []document.Section {
	port, server, here, holder := texts("", "port"), texts("", "served by"),
		texts("this machine, at", "127.0.0.1"), texts("", "socket of")
	port.Once, holder.Spare, here.Span = true, true, 3
	server.Cut, server.Least = document.CutEnd, leastServer
	t := document.Table{Level: 1, Layouts: narrower, Split: document.SplitInTwo, At: firstRoute,
		Columns: []document.Column{port, texts("", "address"), server, holder,
			here, texts("", "::1"), texts("", "own"), texts("a con-", "tainer"),
			texts("another", "machine")}}
	said := ""
	for _, rows := range portRows(r.Ports) {
		first, last := rows[0], rows[len(rows)-1]
		cells := document.Texts(ports.Range(first.Port, last.Port)+"/"+first.Proto, first.Address)
		cells = append(cells, serverCell(first.Server, last.Server),
			document.Cell{Text: holderText(rows)})
		for _, c := range ports.Clients() {
			text := kindText(first.Paths[c])
			cells, said = append(cells, document.Cell{Text: text}), said+" "+text
		}
		t.Rows = append(t.Rows, document.Row{Cells: cells, Style: styleOf(rowVerdict(first))})
	}
	var below document.Section
	if len(r.Address) > 0 {
		below.Add(paragraph(1, "own: "+strings.Join(r.Address, ", ")))
	}
	if r.Client != "" {
		text := "another machine: " + r.Client
		if r.ClientDials != "" {
			text += ", dialling " + r.ClientDials
		}
		below.Add(paragraph(1, text))
	}
	if x := r.Proxies; x != nil && x.Memory > 0 {
		below.Add(paragraph(1, fmt.Sprintf(
			"processes of docker-proxy: %d, with %s of memory, %s each, and %s open",
			x.Number, mebibytes(x.Memory),
			mebibytes(x.Memory/int64(x.Number)), units.Plural(x.Connections, "connection"))))
	}
	legend := portsLegend
	for _, w := range routeWords {
		if strings.Contains(said, w.word) {
			legend += w.word + ": " + w.means + ". "
		}
	}
	below.Add(faint(strings.TrimSpace(legend)),
		faint(
			"toll ports PORT draws a port's routes, checks them and names the command that measures them."))
	var out []document.Section
	if len(r.Ports) > 0 {
		out = append(out, document.Section{Blocks: []document.Block{t}}, below)
	}
	out = append(out, reasons(r)...)
	return slices.Concat(out, insides(r), homes(r), tops(r), networks(r))
}

const firstRoute = 4 // column

// portRows joins rows of neighbouring ports that are alike.
func portRows(rows []ports.Row) [][]ports.Row {
	at := func(r ports.Row) (uint16, string) { return r.Port, r.Proto }
	port := func(r ports.Row) uint16 { _, p := numbered(r.Server); return p }
	return ports.Fold(rows, at, func(have []ports.Row, next ports.Row) bool {
		a, b := have[0], next
		x, _ := numbered(a.Server)
		y, _ := numbered(b.Server)
		return a.Address == b.Address && a.Holder.Kind == b.Holder.Kind && x == y &&
			!slices.ContainsFunc(ports.Clients(), func(c ports.Client) bool {
				return kindText(a.Paths[c]) != kindText(b.Paths[c])
			}) && ports.InStep(have, next, port)
	})
}

// fewReasons is the largest number of reasons that are listed. toll ports PORT lists all of its
// port's.
const fewReasons = 8

// reasons lists why the table has a ? or packets were lost, once for all ports that have the same
// reason from the same clients.
func reasons(r *ports.Report) []document.Section {
	type reason struct{ name, text string }
	var order []reason
	clients, names := map[reason][]string{}, map[reason][]string{}
	add := func(x reason, name string, d dial) {
		if clients[x] == nil {
			order = append(order, x)
		}
		who := clientText(d.client)
		if d.path.Single() {
			who = d.path.From
		}
		clients[x], names[x] = once(clients[x], who), once(names[x], name)
	}
	all := 0
	for i, row := range r.Ports {
		name := portName(row)
		if i == 0 || name != portName(r.Ports[i-1]) {
			all++
		}
		for d := range dialsOf(row) {
			switch p := d.path; {
			case p.Block != nil:
				add(reason{name, string(p.Kind) + ", " + p.Why.Words}, name, d)
			case p.Kind == ports.Blocked && !explained(row, d.client):
				add(reason{name, "blocked; toll ports PORT says by what"}, name, d)
			}
			for _, doubt := range d.path.Doubt {
				if doubt.Code == ports.RouteThere && len(row.Paths[d.client].Doubt) == 0 {
					continue // the table has a route to another address, without a ?
				}
				add(reason{"", "not known, " + doubt.Words}, name, d)
			}
		}
	}
	var texts, items []string
	of := map[string][]string{}
	for _, x := range order {
		text := " from " + orList(clients[x]) + ": " + x.text
		texts, of[text] = once(texts, text), append(of[text], names[x]...)
	}
	for _, text := range texts {
		which := strings.Join(ports.FoldNames(of[text]), " ")
		if all > 1 && len(of[text]) == all {
			which = "all ports"
		}
		items = append(items, which+text)
	}
	if more := len(items) - fewReasons; more > 0 {
		items = append(items[:fewReasons], fmt.Sprintf("and %d more: toll ports PORT", more))
	}
	if len(items) == 0 {
		return nil
	}
	return []document.Section{list(document.Notes, "Why", items)}
}

// explained reports whether it is known where packets of such a client are lost.
func explained(r ports.Row, c ports.Client) bool {
	return slices.ContainsFunc(r.Dials, func(p ports.Path) bool {
		return p.Client == c && p.Block != nil
	})
}

// rowVerdict returns stats.Unclear, which colours the row, if no client gets an answer from the
// port.
func rowVerdict(r ports.Row) stats.Verdict {
	for _, path := range r.Paths {
		if path.Answers() {
			return ""
		}
	}
	return stats.Unclear
}

func traps(r *ports.Report) []document.Section {
	if len(r.Traps) == 0 {
		return nil
	}
	s := document.Section{Title: document.Strongly("Traps")}
	for _, t := range r.Traps {
		text := t.Code
		if len(t.Ports) > 0 {
			text += " " + strings.Join(ports.FoldNames(t.Ports), " ")
		}
		s.Add(document.Paragraph{Level: 1,
			Text: document.Text{{Text: text, Style: document.Doubtful}, {Text: ": " + t.Text}}},
			paragraph(3, "seen: "+t.Evidence))
		s.Add(remedyBlocks(3, t.Remedy)...)
	}
	return []document.Section{s}
}

func costs(r *ports.Report) []document.Section {
	if r.Costs == nil {
		return nil
	}
	var items []string
	for _, c := range ports.Clients() {
		for _, row := range r.Ports {
			path := row.Paths[c]
			if len(path.Cost) == 0 || path.Cost[0].Verdict == "baseline" {
				continue
			}
			var parts []string
			for _, x := range path.Cost {
				s := x.Load + " " + metricName(x.Metric) + " " + x.Text
				if x.Verdict != "baseline" {
					s += " " + x.Verdict
				}
				parts = append(parts, s)
			}
			text := fmt.Sprintf("%s %s (%s): %s", clientText(c), path.Kind, path.Cost[0].Mode,
				strings.Join(parts, "; "))
			if !slices.Contains(items, text) {
				items = append(items, text)
			}
		}
	}
	if len(r.Costs.Lacks) > 0 {
		items = append(items, "not in the file: "+strings.Join(r.Costs.Lacks, ", "))
	}
	s := list(document.Notes, "What such paths cost, by "+r.Costs.File, items)
	s.Title = s.Title.Then(" (ratios to "+r.Costs.Baseline+" there)", document.Faint)
	return []document.Section{s}
}
