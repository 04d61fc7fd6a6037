package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/ports"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// Ports prints who answers the machine's ports; of one port it draws each path.
func Ports(w io.Writer, r *ports.Report, o Options) error {
	if o.Width == 0 {
		o.Width = DefaultWidth
	}
	p := newPrinter(o)
	switch {
	case len(r.Ports) == 0 && r.Port != 0:
		p.line(fmt.Sprintf("Nobody serves port %d: no socket listens, and no rule that could be read leads on from it.", r.Port))
	case len(r.Ports) == 0:
		p.line("No port answers: no socket listens, and no rule that could be read leads on.")
	case r.Port != 0:
		p.explain(r)
	default:
		p.portTable(r)
	}
	p.costs(r)
	p.traps(r)
	if len(r.Missing) > 0 {
		p.line("")
		p.line(p.bold("Not known"))
		for _, m := range r.Missing {
			text := m.What + ": " + m.Why
			if m.Remedy != "" {
				text += "; " + m.Remedy
			}
			p.item(text)
		}
	}
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("write ports: %w", err)
	}
	return nil
}

const portsLegend = "Each way is of a client that dials the machine, at the address given or at its own; there is none where " +
	"another row takes it. direct: the server's own socket. proxy: docker-proxy or rootlesskit passes it on. DNAT: rules send it to the " +
	"container (hairpin: back to the bridge it came from). held: accepted, and nobody answers. blocked: dropped. " +
	"nothing: refused. ?: not all that decides it could be read. *: it depends on the client's address."

// serverWidth is as wide as a server's name may get, if there is no room.
const serverWidth = 22

func (p *printer) portTable(r *ports.Report) {
	head := func(a, b string) column { return column{head: [2]string{a, b}} }
	cols := []column{head("", "port"), head("", "address"), head("", "served by"), head("", "socket of"),
		head("this machine, at", "127.0.0.1"), head("", "::1"), head("", "own"), head("a con-", "tainer"), head("another", "machine")}
	var texts [][]string
	last := ""
	for _, row := range r.Ports {
		name := portName(row)
		line := []string{name, row.Address, serverText(row.Server), holderText(row.Holder)}
		if row.Server.State != "" { // before what may be cut off
			line[2] = row.Server.State + ": " + line[2]
		}
		if name == last {
			line[0] = ""
		}
		last = name
		for _, c := range ports.Clients {
			line = append(line, wayText(row.Paths, c))
		}
		texts = append(texts, line)
	}
	first := cols[4].head[0]
	cols[4].head[0] = "" // it stands above three columns
	p.gap = 2
	widths := measure(cols, texts)
	if p.tableWidth(widths) > p.width {
		p.gap = 1
	}
	const server = 2
	if over := p.tableWidth(widths) - p.width; over > 0 {
		widths[server] = max(serverWidth, widths[server]-over)
		for _, line := range texts {
			line[server] = shorten(line[server], widths[server])
		}
	}
	cols[4].head[0] = first
	p.portHeads(cols, widths)
	for i, line := range texts {
		p.row(cols, widths, line, p.verdict(rowVerdict(r.Ports[i])))
	}
	p.line("")
	if len(r.Address) > 0 {
		p.line("  own: " + strings.Join(r.Address, ", "))
	}
	if r.Client != "" {
		p.line("  another machine: " + r.Client)
	}
	p.faint("  ", portsLegend)
	p.faint("  ", "toll ports PORT draws a port's ways, checks them and names the command that measures them.")
}

// portHeads prints the heads; the one above the machine's three columns is as
// wide as they are.
func (p *printer) portHeads(cols []column, widths []int) {
	const local, after = 4, 7
	before := indent + sum(widths[:local]) + local*p.gap
	span := sum(widths[local:after]) + (after-local)*p.gap
	top := strings.Repeat(" ", before) + align(shorten(cols[local].head[0], span-1), span, false)
	for i := after; i < len(cols); i++ {
		top += align(cols[i].head[0], widths[i]+p.gap, false)
	}
	p.line(p.dim(strings.TrimRight(top, " ")))
	texts := make([]string, len(cols))
	for i, c := range cols {
		texts[i] = c.head[1]
	}
	p.row(cols, widths, texts, p.dim)
}

func portName(r ports.Row) string { return strconv.Itoa(int(r.Port)) + "/" + r.Proto }

// shorten cuts s to at most n columns.
func shorten(s string, n int) string {
	if width(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:max(0, n-1)]) + "…"
}

// serverText is who serves: "web:80 (nginx)", "redis-server 811".
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

func wayText(paths map[ports.Client]ports.Path, c ports.Client) string {
	path, ok := paths[c]
	if !ok {
		return ""
	}
	text := string(path.Way)
	if len(path.Doubt) > 0 {
		text += "?"
	}
	if len(path.Depends) > 0 {
		text += "*"
	}
	return text
}

// rowVerdict colours a row that nobody gets an answer from.
func rowVerdict(r ports.Row) stats.Verdict {
	for _, path := range r.Paths {
		if path.Answers() {
			return ""
		}
	}
	return stats.Unclear
}

func (p *printer) traps(r *ports.Report) {
	if len(r.Traps) == 0 {
		return
	}
	p.line("")
	p.line(p.bold("Traps"))
	for _, t := range r.Traps {
		text := t.Code
		if len(t.Ports) > 0 {
			text += " " + strings.Join(t.Ports, " ")
		}
		p.wrapped("  ", p.verdict(stats.Unclear)(text)+": "+t.Text, " ")
		p.wrapped("      ", "seen: "+t.Evidence, " ")
		p.wrapped("      ", "remedy: "+t.Remedy, " ")
	}
}

// costs lists what the kinds of paths cost, each once.
func (p *printer) costs(r *ports.Report) {
	if r.Costs == nil {
		return
	}
	p.line("")
	p.line(p.bold("What such paths cost, by "+r.Costs.File) + p.dim(" (ratios to "+r.Costs.Baseline+" there)"))
	seen := map[string]bool{}
	for _, c := range ports.Clients {
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
			text := fmt.Sprintf("%s %s (%s): %s", clientText(c), path.Way, path.Cost[0].Mode, strings.Join(parts, "; "))
			if !seen[text] {
				seen[text] = true
				p.item(text)
			}
		}
	}
	if len(r.Costs.Lacks) > 0 {
		p.item("not in the file: " + strings.Join(r.Costs.Lacks, ", "))
	}
}

// metricName is a metric in words.
func metricName(m string) string { return strings.ReplaceAll(m, "_", " ") }

// clientText names a client in a sentence.
func clientText(c ports.Client) string {
	return map[ports.Client]string{ports.Loopback: "127.0.0.1", ports.Loopback6: "::1", ports.OwnAddr: "own address",
		ports.Neighbour: "a container", ports.Remote: "another machine"}[c]
}
