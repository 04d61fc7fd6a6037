package report

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/ports"
	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// explain draws each path to a port, hop by hop, as Path does.
func (p *printer) explain(r *ports.Report) {
	for i, row := range r.Ports {
		if i > 0 {
			p.line("")
		}
		p.wrapped("", p.bold(portName(row)+" on "+row.Address)+": "+servedBy(row), " ")
		for _, c := range ports.Clients {
			if path, ok := row.Paths[c]; ok {
				p.line("")
				p.portPath(c, path)
			}
		}
	}
	p.line("")
	p.checks(r)
}

// servedBy says who serves a row and whose its socket is.
func servedBy(r ports.Row) string {
	s := "served by " + serverText(r.Server)
	if r.Server.PID != 0 && r.Server.Kind == "container" {
		s += fmt.Sprintf(", process %d", r.Server.PID)
	}
	if r.Server.Kind == "unknown" && r.Server.Name == "" {
		s = "served by a process of another user"
	}
	switch r.Holder.Kind {
	case "docker-proxy":
		return s + fmt.Sprintf("; the socket is docker-proxy's (process %d)", r.Holder.PID)
	case ports.Rootlesskit:
		return s + fmt.Sprintf("; the socket is rootlesskit's (process %d), which passes it on into the network of a rootless engine", r.Holder.PID)
	case "dockerd":
		return s + fmt.Sprintf("; dockerd (process %d) keeps the socket open and never answers: rules lead on before it", r.Holder.PID)
	case "rules":
		return s + "; no socket listens: rules lead on"
	}
	return s
}

func (p *printer) portPath(c ports.Client, path ports.Path) {
	title := map[ports.Client]string{ports.Loopback: "this machine, dialling 127.0.0.1", ports.Loopback6: "this machine, dialling ::1",
		ports.OwnAddr: "this machine, dialling its own address", ports.Neighbour: "a container on the same network",
		ports.Remote: "another machine"}[c]
	way := string(path.Way)
	if len(path.Doubt) > 0 {
		way += "?"
	}
	p.line("  " + title + ": " + p.bold(way))
	kinds := width("client")
	for _, h := range path.Hops {
		kinds = max(kinds, width(h.Kind))
	}
	step := func(kind, text string) { p.wrapped("    ", align(kind, kinds, false)+"  "+text, " ") }
	step("client", "connects to "+path.Dial)
	for _, h := range path.Hops {
		p.line("      │")
		step(h.Kind, h.Text)
	}
	if path.Why != "" {
		p.line("      ╳")
		p.wrapped("    ", p.verdict(stats.Worse)(path.Why), " ")
	} else if path.Masqueraded {
		p.wrapped("    ", p.dim("The server does not see the client's address."), " ")
	}
	for _, d := range path.Doubt {
		p.wrapped("    ", "not known: "+d, " ")
	}
	if len(path.Cost) > 0 {
		var parts []string
		for _, x := range path.Cost {
			parts = append(parts, x.Load+" "+metricName(x.Metric)+" "+x.Text)
		}
		p.wrapped("    ", p.dim("cost: "+strings.Join(parts, "; ")), " ")
	}
}

// checks says what was tried and what is only inferred.
func (p *printer) checks(r *ports.Report) {
	if len(r.Checks) > 0 {
		p.line(p.bold("Checked") + " by connecting from this machine:")
	}
	for _, k := range r.Checks {
		text := fmt.Sprintf("%s: %s in %s ms", k.Dial, k.Got, digits(1000*k.Elapsed))
		if k.Detail != "" {
			text += " (" + k.Detail + ")"
		}
		switch {
		case !k.Agrees:
			text += p.verdict(stats.Worse)(fmt.Sprintf("; that is not what %q means: something here is not as it was read", k.Expected))
		case k.Got == "closed" && k.Expected == ports.Nothing:
			text += ": the proxy accepts, though nobody is behind it"
		case k.Got == "connected" && k.Expected == ports.Held:
			text += ": by dockerd's socket, which never answers"
		}
		p.item(text)
	}
	p.wrapped("", p.bold("Inferred")+" from sockets, rules and settings: which hops are crossed, and the ways of containers and other machines. "+
		"UDP is not tried.", " ")
}
