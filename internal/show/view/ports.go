package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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

const portsLegend = "Each route is that of a client that dials the machine, at the address given or at its own; there is none where " +
	"another row takes it. direct: the server's own socket. proxy: docker-proxy or rootlesskit passes it on. shortcut: toll fast redirects it to the container. DNAT: rules send it to the " +
	"container (hairpin: back to the bridge it came from). held: accepted, but no answer. blocked: dropped. " +
	"nothing: refused. ?: not everything that decides it could be read. *: it depends on the client's address."

// serverWidth is where names are cut if space is short, in columns.
const serverWidth = 22

func portSections(r *ports.Report) []document.Section {
	port, server, here := texts("", "port"), texts("", "served by"),
		texts("this machine, at", "127.0.0.1")
	port.Once = true
	server.Cut, server.Least = document.CutEnd, serverWidth
	here.Span = 3
	t := document.Table{Level: 1, Layouts: onlyGaps,
		Columns: []document.Column{port, texts("", "address"), server, texts("", "socket of"),
			here, texts("", "::1"), texts("", "own"), texts("a con-", "tainer"),
			texts("another", "machine")}}
	for _, row := range r.Ports {
		served := serverText(row.Server)
		if row.Server.State != "" { // before the part that may be cut off
			served = row.Server.State + ": " + served
		}
		cells := document.Texts(portName(row), row.Address, served, holderText(row.Holder))
		for _, c := range ports.Clients() {
			cells = append(cells, document.Cell{Text: routeText(row.Paths, c)})
		}
		t.Rows = append(t.Rows, document.Row{Cells: cells, Style: styleOf(rowVerdict(row))})
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
	below.Add(faint(portsLegend, document.Words),
		faint(
			"toll ports PORT draws a port's routes, checks them and names the command that measures them.", document.Words))
	var out []document.Section
	if len(r.Ports) > 0 {
		out = append(out, document.Section{Blocks: []document.Block{t}}, below)
	}
	return append(append(out, insides(r)...), homes(r)...)
}

const insideLegend = "Clients dial the container's own address. another network: a container on another of this machine's bridges. " +
	"another machine needs a route to the address besides."

func insides(r *ports.Report) []document.Section {
	if len(r.Inside) == 0 {
		return nil
	}
	server := texts("", "served by")
	server.Cut, server.Least = document.CutEnd, serverWidth
	t := document.Table{Level: 1, Layouts: onlyGaps,
		Columns: []document.Column{texts("", "port"), texts("", "address"), server,
			texts("", "networks"),
			texts("this", "machine"), texts("its", "network"), texts("another", "network"),
			texts("another", "machine")}}
	for _, x := range r.Inside {
		served := serverText(x.Server)
		if x.Server.State != "" {
			served = x.Server.State + ": " + served
		}
		cells := document.Texts(insideName(x), x.Dial, served,
			orDash(strings.Join(x.Networks, ", ")))
		for _, c := range ports.Insiders() {
			cells = append(cells, document.Cell{Text: orDash(routeText(x.Paths, c))})
		}
		t.Rows = append(t.Rows, document.Row{Cells: cells})
	}
	return []document.Section{{Title: document.Strongly("In containers, not published"),
		Blocks: []document.Block{t, faint(insideLegend, document.Words)}}}
}

func insideName(x ports.Inside) string { return strconv.Itoa(int(x.Port)) + "/" + x.Proto }

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
func serverText(s ports.Server) string {
	switch s.Kind {
	case "container":
		text := s.Name + ":" + strconv.Itoa(int(s.Port))
		if s.Network != "" {
			text = s.Name + ", " + s.Network + " network"
			if net, ok := strings.CutPrefix(s.Network, "container:"); ok {
				text = s.Name + ":" + strconv.Itoa(int(s.Port)) + " in " + net
			}
		}
		if s.Image != "" {
			text += " (" + s.Image + ")"
		}
		return text
	case "service":
		return s.Name + ":" + strconv.Itoa(int(s.Port)) + ", swarm's ingress"
	case "process":
		return s.Name + " " + strconv.Itoa(s.PID)
	}
	return orDash(s.Name)
}

func holderText(h ports.Holder) string {
	switch h.Kind {
	case "docker-proxy", ports.Rootlesskit:
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

func routeText(paths map[ports.Client]ports.Path, c ports.Client) string {
	path, ok := paths[c]
	if !ok {
		return ""
	}
	text := string(path.Kind)
	if len(path.Doubt) > 0 {
		text += "?"
	}
	if len(path.Depends) > 0 {
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
			text += " " + strings.Join(t.Ports, " ")
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
		ports.Neighbour: "a container", ports.Remote: "another machine"}[c]
}
