package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func explain(r *ports.Report) []document.Section {
	var out []document.Section
	for _, row := range r.Ports {
		out = append(out, document.Section{Blocks: []document.Block{
			document.Paragraph{Break: document.Words,
				Text: document.Strongly(portName(row)+" on "+row.Address).Then(
					": "+servedBy(row), document.Plain)}}})
		for _, clients := range alike(row.Paths) {
			out = append(out, portPath(clients, row.Paths, r.Client))
		}
	}
	for _, x := range r.Inside {
		out = append(out, document.Section{Blocks: []document.Block{
			document.Paragraph{Break: document.Words,
				Text: document.Strongly(insideName(x)+" on "+x.Dial).Then(
					": served by "+serverText(x.Server)+", not published", document.Plain)}}})
		for _, c := range ports.Insiders() {
			if path, ok := x.Paths[c]; ok {
				out = append(out, insidePath(c, path))
			}
		}
	}
	below := checks(r)
	below.Add(measure(r)...)
	return append(out, below)
}

// alike groups clients whose routes differ only in arrival.
func alike(paths map[ports.Client]ports.Path) [][]ports.Client {
	var out [][]ports.Client
	for _, c := range ports.Clients() {
		path, ok := paths[c]
		if !ok {
			continue
		}
		i := slices.IndexFunc(out, func(have []ports.Client) bool {
			return sameRoute(paths[have[0]], path)
		})
		if i < 0 {
			out = append(out, []ports.Client{c})
			continue
		}
		out[i] = append(out[i], c)
	}
	return out
}

func sameRoute(a, b ports.Path) bool {
	_, restA := arrival(a)
	_, restB := arrival(b)
	return a.Kind == b.Kind && a.Why == b.Why && a.Masqueraded == b.Masqueraded &&
		slices.Equal(a.Doubt, b.Doubt) && slices.Equal(a.Depends, b.Depends) &&
		slices.Equal(a.Cost, b.Cost) && slices.Equal(restA, restB)
}

// by leads to the machine.
func arrival(path ports.Path) (by, rest []ports.Hop) {
	i := 0
	for i < len(path.Hops) && slices.Contains([]string{"lo", "wire", "veth", "bridge"},
		path.Hops[i].Kind) {
		i++
	}
	return path.Hops[:i], path.Hops[i:]
}

func servedBy(r ports.Row) string {
	s := "served by " + serverText(r.Server)
	if r.Server.PID != 0 && r.Server.Kind == "container" {
		s += fmt.Sprintf(", process %d", r.Server.PID)
	}
	if r.Server.State != "" {
		s += ", " + r.Server.State
	}
	if r.Server.Kind == "unknown" && r.Server.Name == "" {
		s = "served by a process of another user"
	}
	switch r.Holder.Kind {
	case "docker-proxy":
		s += fmt.Sprintf("; the socket is docker-proxy's (process %d", r.Holder.PID)
		if r.Holder.Memory > 0 {
			s += fmt.Sprintf(", %s of memory, %s open", mebibytes(r.Holder.Memory),
				units.Plural(r.Holder.Connections, "connection"))
		}
		return s + ")"
	case ports.Rootlesskit:
		return s +
			fmt.Sprintf(
				"; the socket is rootlesskit's (process %d), which passes it on into the network of a rootless engine", r.Holder.PID)
	case "dockerd":
		return s +
			fmt.Sprintf(
				"; dockerd (process %d) keeps the socket open and never answers: NAT rules redirect the connection first", r.Holder.PID)
	case "rules":
		return s + "; no socket listens: NAT rules redirect it"
	}
	return s
}

func portPath(clients []ports.Client, paths map[ports.Client]ports.Path,
	other string) (out document.Section) {
	path := paths[clients[0]]
	if strings.HasPrefix(paths[ports.Remote].Dial, "[") != strings.Contains(other, ":") {
		other = "" // a port of the other family may belong to anybody
	}
	out.Add(document.Paragraph{Level: 1, Break: document.Words,
		Text: document.Plainly(clientsText(clients, other)+": ").Then(
			routeText(paths, clients[0]), document.Strong)})
	by, rest := arrival(path)
	hops := path.Hops
	var dials, arrivals []string
	for _, c := range clients {
		if !slices.Contains(dials, paths[c].Dial) {
			dials = append(dials, paths[c].Dial)
		}
		mine, _ := arrival(paths[c])
		if how := arrivalText(c, mine); !slices.Contains(arrivals, how) {
			arrivals = append(arrivals, how)
		}
		if !slices.Equal(mine, by) {
			hops = nil
		}
	}
	if hops == nil { // they arrive differently
		hops = append([]ports.Hop{{Kind: "by", Text: strings.Join(arrivals, "; ")}}, rest...)
	}
	route := document.Route{Level: 2, Break: document.Words, Ends: path.Why,
		Steps: []document.Step{{Kind: "client",
			Text: document.Plainly("connects to " + orList(dials))}}}
	for _, h := range hops {
		route.Steps = append(route.Steps, document.Step{
			Kind: h.Kind, Text: document.Plainly(h.Text)})
	}
	out.Add(route)
	small := func(text string) document.Paragraph {
		return document.Paragraph{Level: 2, Break: document.Words,
			Text: document.Text{{Text: text, Style: document.Faint}}}
	}
	if path.Why == "" && path.Masqueraded {
		out.Add(small("The server does not see the client's address."))
	}
	for _, d := range path.Doubt {
		out.Add(paragraph(2, "not known: "+d, document.Words))
	}
	for _, d := range path.Depends {
		out.Add(paragraph(2, "depends on the client's address: a rule of "+d, document.Words))
	}
	if len(path.Cost) > 0 {
		var parts []string
		for _, x := range path.Cost {
			parts = append(parts, x.Load+" "+metricName(x.Metric)+" "+x.Text)
		}
		out.Add(small("cost: " + strings.Join(parts, "; ")))
	}
	return out
}

func insidePath(c ports.Client, path ports.Path) (out document.Section) {
	who := map[ports.Client]string{ports.OwnAddr: "this machine",
		ports.Neighbour: "a container on the same network",
		ports.Foreign:   "a container on another network", ports.Remote: "another machine"}[c]
	out.Add(document.Paragraph{Level: 1, Break: document.Words,
		Text: document.Plainly(who+": ").Then(
			routeText(map[ports.Client]ports.Path{c: path}, c), document.Strong)})
	route := document.Route{Level: 2, Break: document.Words, Ends: path.Why,
		Steps: []document.Step{{Kind: "client",
			Text: document.Plainly("connects to " + path.Dial)}}}
	for _, h := range path.Hops {
		route.Steps = append(route.Steps, document.Step{
			Kind: h.Kind, Text: document.Plainly(h.Text)})
	}
	out.Add(route)
	for _, d := range path.Doubt {
		out.Add(paragraph(2, "not known: "+d, document.Words))
	}
	for _, d := range path.Depends {
		out.Add(paragraph(2, "depends on the client's address: a rule of "+d, document.Words))
	}
	return out
}

func clientsText(clients []ports.Client, other string) string {
	var here, out []string
	for _, c := range clients {
		switch c {
		case ports.Loopback, ports.Loopback6:
			here = append(here, string(c))
		case ports.OwnAddr:
			here = append(here, "its own address")
		case ports.Neighbour:
			out = append(out, "a container on the same network")
		case ports.Remote:
			if other != "" {
				out = append(out, "another machine, "+other)
			} else {
				out = append(out, "another machine")
			}
		}
	}
	if len(here) > 0 {
		out = append([]string{"this machine, dialling " + orList(here)}, out...)
	}
	return strings.Join(out, "; ")
}

func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func arrivalText(c ports.Client, by []ports.Hop) string {
	if c != ports.Neighbour && c != ports.Remote {
		if len(by) == 0 {
			return "this machine"
		}
		return "this machine by " + by[0].Kind
	}
	return clientText(c) + " by " + by[len(by)-1].Text
}

func measure(r *ports.Report) (out []document.Block) {
	if r.MeasureServer != "" {
		out = append(out, document.Paragraph{
			Break: document.Words, Text: document.Strongly("To measure").Then(
				" this server over each of its routes, with a client of your own in place of this one if need be:", document.Plain)},
			document.Command{Line: r.MeasureServer})
	}
	if len(r.Measure) == 0 {
		return out
	}
	var items []string
	for _, m := range r.Measure {
		items = append(items, m.Command)
	}
	return append(out,
		document.Paragraph{Break: document.Words,
			Text: document.Strongly("To measure").Then(
				" such routes in the lab, beside what a published port could be instead:",
				document.Plain)},
		document.List{Topic: document.Notes, Items: items, Level: 1})
}

func checks(r *ports.Report) (out document.Section) {
	if len(r.Checks) > 0 {
		out.Add(document.Paragraph{Text: document.Strongly("Checked").Then(
			" by connecting from this machine:", document.Plain)})
	}
	for _, k := range r.Checks {
		text := document.Plainly(fmt.Sprintf(
			"%s: %s in %s ms", k.Dial, k.Got, digits(1000*k.Elapsed)))
		if k.Detail != "" {
			text = text.Then(" ("+k.Detail+")", document.Plain)
		}
		switch {
		case !k.Agrees:
			text = text.Then(
				fmt.Sprintf("; that contradicts %q: something was read wrongly or has changed",
					k.Expected), document.Bad)
		case k.Got == "closed" && k.Expected == ports.Nothing:
			text = text.Then(": the proxy accepts, though nothing listens behind it",
				document.Plain)
		case k.Got == "connected" && k.Expected == ports.Held:
			text = text.Then(": accepted, but no answer", document.Plain)
		}
		out.Add(document.Paragraph{Level: 1, Break: document.Words, Text: text})
	}
	out.Add(document.Paragraph{Break: document.Words, Text: document.Strongly("Inferred").Then(
		" from sockets, rules and settings: which hops are crossed, and the routes of containers and other machines. UDP is not tried.", document.Plain)})
	return out
}
