package view

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Ports shows the programs that answer on ports, and for a single port each path.
func Ports(r *ports.Report) document.Document {
	d := document.Document{Kind: document.PortList, JSON: r}
	switch {
	case len(r.Ports)+len(r.Inside) == 0 && r.Port != 0:
		d.Sections = saying(
			fmt.Sprintf(
				"Nothing serves port %d: no socket listens, and no readable rule redirects it.",
				r.Port))
	case len(r.Ports)+len(r.Inside) == 0:
		d.Sections = saying(
			"No port answers: no socket listens, and no readable rule redirects a port.")
	case r.Port != 0:
		d.Sections = explain(r)
	default:
		d.Sections = portSections(r)
	}
	if r.Answer != nil {
		d.Sections = append([]document.Section{answerSection(r.Answer)}, d.Sections...)
	}
	d.Sections = append(d.Sections, costs(r)...)
	d.Sections = append(d.Sections, traps(r)...)
	if len(r.Missing) > 0 {
		var items []string
		for _, m := range r.Missing {
			text := m.What + ": " + m.Why
			if m.Remedy != "" {
				text += "; " + m.Remedy
			}
			items = append(items, text)
		}
		d.Sections = append(d.Sections, list(document.Notes, "Not known", items))
	}
	return d
}

func saying(text string) []document.Section {
	return []document.Section{{Blocks: []document.Block{paragraph(0, text, document.Words)}}}
}

const portsLegend = "Each route is of a client that dials the address given or the machine's own; " +
	"empty: another row takes it. "

// routeWords explain what cells of the table say.
var routeWords = []struct{ word, means string }{
	{string(ports.Direct), "the server's own socket"},
	{string(ports.ByProxy), "docker-proxy or a relay passes it on"},
	{string(ports.ByShortcut), "toll fast redirects it to the container"},
	{string(ports.ByNAT), "rules send it to the container"},
	{string(ports.Hairpin), "rules send it back to the bridge it came from"},
	{string(ports.Held), "accepted, but no answer"},
	{string(ports.Blocked), "no answer, see Why"},
	{string(ports.Nothing), "refused"},
	{"?", "not everything that decides it is known"},
	{"*", "not the same for all such clients or addresses"},
}

// Names are cut at serverWidth columns if space is short, and at leastServer in narrow tables.
const serverWidth, leastServer = 22, 16

// portLayouts keep routes and ports in one line: at 80 columns without the sockets' owners.
var portLayouts = []document.Layout{{}, {Tight: true}, {Tight: true, Short: true},
	{Tight: true, Short: true, Lean: true}}

func portSections(r *ports.Report) []document.Section {
	port, server, here, holder := texts("", "port"), texts("", "served by"),
		texts("this machine, at", "127.0.0.1"), texts("", "socket of")
	port.Once, holder.Spare, here.Span = true, true, 3
	server.Cut, server.Least = document.CutEnd, leastServer
	t := document.Table{Level: 1, Layouts: portLayouts, Split: document.SplitInTwo, At: firstRoute,
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
		below.Add(paragraph(1, "own: "+strings.Join(r.Address, ", "), document.Words))
	}
	if r.Client != "" {
		below.Add(paragraph(1, "another machine: "+r.Client, document.Words))
	}
	if x := r.Proxies; x != nil && x.Memory > 0 {
		below.Add(
			paragraph(
				1,
				fmt.Sprintf(
					"processes of docker-proxy: %d, with %s of memory, %s each, and %s open",
					x.Number, mebibytes(x.Memory),
					mebibytes(x.Memory/int64(x.Number)), units.Plural(x.Connections, "connection")),
				document.Words))
	}
	legend := portsLegend
	for _, w := range routeWords {
		if strings.Contains(said, w.word) {
			legend += w.word + ": " + w.means + ". "
		}
	}
	below.Add(faint(strings.TrimSpace(legend), document.Words),
		faint(
			"toll ports PORT draws a port's routes, checks them and names the command that measures them.", document.Words))
	var out []document.Section
	if len(r.Ports) > 0 {
		out = append(out, document.Section{Blocks: []document.Block{t}}, below)
	}
	out = append(out, reasons(r)...)
	return append(append(out, insides(r)...), homes(r)...)
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

// numbered takes the port out of a server.
func numbered(s ports.Server) (ports.Server, uint16) {
	port := s.Port
	if at, err := netip.ParseAddrPort(s.Name); err == nil && s.Kind == "unknown" {
		s.Name, port = at.Addr().String(), at.Port()
	}
	s.Port = 0
	return s, port
}

// serverCell has a short form with the port, but without the image.
func serverCell(first, last ports.Server) document.Cell {
	c := document.Cell{Text: serversText(first, last)}
	first.Image, last.Image = "", ""
	over := ansi.StringWidth(serversText(first, last)) - serverWidth
	if n := ansi.StringWidth(first.Name); over > 0 && n > over {
		first.Name = ansi.Truncate(first.Name, n-over, "…")
	}
	c.Short = ansi.Truncate(serversText(first, last), serverWidth, "…")
	if first.State != "" { // before the part that may be cut off
		c.Text, c.Short = first.State+": "+c.Text, first.State+": "+c.Short
	}
	return c
}

// fewReasons is the largest number that is listed; toll ports PORT has all of its port's.
const fewReasons = 8

// reasons says why the table has a ? or packets were lost, once for all ports that have the same
// reason from the same clients.
func reasons(r *ports.Report) []document.Section {
	type reason struct{ name, text string }
	var order []reason
	clients, names := map[reason][]string{}, map[reason][]string{}
	add := func(x reason, name string, c ports.Client) {
		if clients[x] == nil {
			order = append(order, x)
		}
		clients[x], names[x] = once(clients[x], clientText(c)), once(names[x], name)
	}
	all := 0
	for i, row := range r.Ports {
		name := portName(row)
		if i == 0 || name != portName(r.Ports[i-1]) {
			all++
		}
		for _, d := range dialsOf(row) {
			switch p := d.path; {
			case p.Block != nil:
				add(reason{name, string(p.Kind) + ", " + p.Why}, name, d.client)
			case p.Kind == ports.Blocked && !explained(row, d.client):
				add(reason{name, "blocked; toll ports PORT says by what"}, name, d.client)
			}
			for _, text := range d.path.Doubt { // a doubt may say more than it must
				add(reason{"", "not known, " + text}, name, d.client)
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

const insideLegend = "Clients dial the container's own address. another network: a container on another of this machine's bridges. " +
	"another machine needs a route to the address besides."

func insides(r *ports.Report) []document.Section {
	if len(r.Inside) == 0 {
		return nil
	}
	server, networks := texts("", "served by"), texts("", "networks")
	server.Cut, server.Least, networks.Spare = document.CutEnd, serverWidth, true
	t := document.Table{Level: 1, Layouts: portLayouts,
		Columns: []document.Column{texts("", "address"), server, networks,
			texts("this", "machine"), texts("its", "network"), texts("another", "network"),
			texts("another", "machine")}}
	for _, group := range insideRows(r.Inside) {
		x, last := group[0], group[len(group)-1]
		at := strings.TrimSuffix(x.Dial, strconv.Itoa(int(x.Port))) +
			ports.Range(x.Port, last.Port) + "/" + x.Proto
		cells := []document.Cell{{Text: at}, serverCell(x.Server, last.Server),
			{Text: orDash(strings.Join(x.Networks, ", "))}}
		for _, c := range ports.Insiders() {
			cells = append(cells, document.Cell{Text: orDash(kindText(x.Paths[c]))})
		}
		t.Rows = append(t.Rows, document.Row{Cells: cells})
	}
	return []document.Section{{Title: document.Strongly("In containers, not published"),
		Blocks: []document.Block{t, faint(insideLegend, document.Words)}}}
}

func insideRows(list []ports.Inside) [][]ports.Inside {
	at := func(x ports.Inside) (uint16, string) { return x.Port, x.Proto }
	return ports.Fold(list, at, func(have []ports.Inside, next ports.Inside) bool {
		a, b := have[0], next
		return a.Server.ID == b.Server.ID && a.Server.Name == b.Server.Name &&
			a.Server.PID == b.Server.PID && host(a.Dial) == host(b.Dial) &&
			!slices.ContainsFunc(ports.Insiders(), func(c ports.Client) bool {
				return kindText(a.Paths[c]) != kindText(b.Paths[c])
			})
	})
}

func host(dial string) string {
	at, err := netip.ParseAddrPort(dial)
	if err != nil {
		return dial
	}
	return at.Addr().String()
}

func homes(r *ports.Report) []document.Section {
	if len(r.Containers) == 0 {
		return nil
	}
	name := texts("", "container")
	name.Once, name.Cut, name.Least = true, document.CutEnd, serverWidth
	t := document.Table{Level: 1, Layouts: onlyGaps,
		Columns: []document.Column{name, texts("", "networks"), texts("", "device"),
			texts("", "addresses"),
			texts("", "peer here"), texts("", "bridge")}}
	for _, h := range r.Containers {
		network := strings.Join(h.Networks, ", ")
		if h.Network != "" {
			network = h.Network
		}
		if len(h.Devices) == 0 {
			addresses := strings.Join(h.Addresses, ", ")
			if h.Network == "host" {
				addresses = "the machine's"
			}
			t.Rows = append(t.Rows, document.Row{
				Cells: document.Texts(h.Name, orDash(network), "-", orDash(addresses), "-", "-")})
		}
		for _, d := range h.Devices {
			t.Rows = append(t.Rows, document.Row{
				Cells: document.Texts(h.Name, orDash(network), d.Name,
					orDash(strings.Join(d.Addresses, ", ")), orDash(d.Peer), orDash(d.Master))})
		}
	}
	return []document.Section{{Title: document.Strongly("Containers"), Blocks: []document.Block{t}}}
}

func portName(r ports.Row) string { return strconv.Itoa(int(r.Port)) + "/" + r.Proto }

// serverText returns text such as "web:80 (nginx)" or "redis-server 811".
func serverText(s ports.Server) string { return serversText(s, s) }

// serversText returns the text of neighbouring ports' servers, which differ only in the port.
func serversText(s, last ports.Server) string {
	_, low := numbered(s)
	_, high := numbered(last)
	port := ""
	if high != 0 {
		port = ":" + ports.Range(low, high)
	}
	switch s.Kind {
	case "container":
		text := s.Name + port
		if s.Network != "" {
			text = s.Name + ", " + s.Network + " network"
			if net, ok := strings.CutPrefix(s.Network, "container:"); ok {
				text = s.Name + port + " in " + net
			}
		}
		if s.Image != "" {
			text += " (" + s.Image + ")"
		}
		return text
	case "service":
		return s.Name + port + ", swarm's ingress"
	case "process":
		return s.Name + " " + strconv.Itoa(s.PID)
	}
	if low != high {
		return strings.TrimSuffix(s.Name, ":"+ports.Range(low, low)) + port
	}
	return orDash(s.Name)
}

// holderText returns the text of rows that differ only in their proxy's process.
func holderText(rows []ports.Row) string {
	h := rows[0].Holder
	relay := ports.IsRelay(h.Kind)
	switch {
	case relay && slices.ContainsFunc(rows, func(r ports.Row) bool { return r.Holder.PID != h.PID }):
		return fmt.Sprintf("%d relays", len(rows))
	case relay:
		return h.Kind + " " + strconv.Itoa(h.PID)
	}
	switch h.Kind {
	case "docker-proxy":
		if len(rows) > 1 {
			return fmt.Sprintf("%d proxies", len(rows))
		}
		return "proxy " + strconv.Itoa(h.PID)
	case "dockerd":
		return "dockerd"
	case "rules":
		return "no one"
	case "unknown":
		return "?"
	}
	return "itself"
}

// kindText returns "" if there is no path.
func kindText(p ports.Path) string {
	if p.Kind == ports.Unknown {
		return "?"
	}
	text := string(p.Kind)
	if len(p.Doubt) > 0 {
		text += "?"
	}
	if len(p.Depends) > 0 {
		text += "*"
	}
	return text
}

// rowVerdict colours a row if nobody gets an answer from the port.
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
		s.Add(document.Paragraph{Level: 1, Break: document.Words,
			Text: document.Text{{Text: text, Style: document.Doubtful}, {Text: ": " + t.Text}}},
			paragraph(3, "seen: "+t.Evidence, document.Words),
			paragraph(3, "remedy: "+t.Remedy, document.Words))
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

func metricName(m string) string { return strings.ReplaceAll(m, "_", " ") }

func clientText(c ports.Client) string {
	return map[ports.Client]string{ports.Loopback: "127.0.0.1", ports.Loopback6: "::1",
		ports.OwnAddr:   "own address",
		ports.Neighbour: "a container", ports.Foreign: "a container on another network",
		ports.Remote: "another machine"}[c]
}
