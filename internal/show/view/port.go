package view

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// dial is a connection by one kind of client.
type dial struct {
	client ports.Client
	path   ports.Path
}

// explain draws a port's routes: with details hop by hop.
func explain(r *ports.Report, details bool) []document.Section {
	var out []document.Section
	d := drawn{answer: answerText(r), whole: details}
	for _, row := range r.Ports {
		served := servedBy(row)
		if !details {
			served = servedBriefly(row)
		}
		s := document.Section{Blocks: []document.Block{
			document.Paragraph{Text: document.Strongly(portName(row)+" on "+bracketed(row.Address)).Then(
				": "+served, document.Plain)}}}
		for _, dials := range alike(slices.Collect(dialsOf(row))) {
			s.Add(d.routes(dials, clientsText(dials, r.Client)).Blocks...)
		}
		out = append(out, s)
	}
	for _, x := range r.Inside {
		s := document.Section{Blocks: []document.Block{
			document.Paragraph{Text: document.Strongly(fmt.Sprintf("%d/%s on %s", x.Port, x.Proto,
				cmp.Or(x.Loopback, x.Dial))).Then(insideText(x), document.Plain)}}}
		var all []dial
		for _, c := range append([]ports.Client{ports.Itself}, ports.Insiders()...) {
			path, ok := x.Paths[c]
			if !ok {
				continue
			}
			all = append(all, dial{c, path})
			for _, p := range x.Dials { // those to which it does not apply
				if p.Single() && p.Client == c && p.Answers() != path.Answers() {
					all = append(all, dial{c, p})
				}
			}
		}
		for _, dials := range d.together(all) {
			var who []string
			for _, one := range dials {
				who = once(who, placeText(one))
			}
			s.Add(d.routes(dials, strings.Join(who, "; ")).Blocks...)
		}
		out = append(out, s)
	}
	below := checks(r, details)
	below.Add(measure(r, details)...)
	return append(out, below)
}

// servedBriefly returns the words for who serves a port and who has its socket.
func servedBriefly(r ports.Row) string {
	text := "served by " + serverText(r.Server)
	if r.Server.State != "" {
		text += ", " + r.Server.State
	}
	if k := r.Holder.Kind; k == "docker-proxy" || ports.IsRelay(k) {
		return text + fmt.Sprintf("; %s %d has the socket", k, r.Holder.PID)
	}
	return servedBy(r)
}

// bracketed returns an address as it stands before a port.
func bracketed(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}

// insideText returns the words for a container's port.
func insideText(x ports.Inside) string {
	text := ": served by " + serverText(x.Server)
	switch {
	case x.Loopback != "":
		return text + ", on the container's own loopback address"
	case x.Published:
		return text + ", published: at the container's own address"
	}
	return text + ", not published"
}

// tried reports whether connections were made in a copy of the machine.
func tried(r *ports.Report) bool {
	untried := func(p ports.Path) bool { return slices.ContainsFunc(p.Doubt, isUntried) }
	for _, row := range r.Ports {
		if slices.ContainsFunc(row.Dials, untried) {
			return false
		}
	}
	for _, x := range r.Inside {
		for _, p := range x.Paths {
			if untried(p) {
				return false
			}
		}
	}
	return true
}

func isUntried(d ports.Reason) bool { return d.Code == ports.Untried }

func dialsOf(r ports.Row) iter.Seq[dial] {
	return func(yield func(dial) bool) {
		for _, p := range r.Dials {
			if of := r.Paths[p.Client]; p.Cost == nil && p.Kind == of.Kind {
				p.Cost = of.Cost
			}
			p.Depends = nil // the others are here
			if !yield(dial{p.Client, p}) {
				return
			}
		}
	}
}

// alike groups dials whose routes differ only in arrival.
func alike(dials []dial) (out [][]dial) {
	for _, d := range dials {
		i := slices.IndexFunc(out, func(have []dial) bool {
			return sameRoute(have[0].path, d.path)
		})
		if i < 0 {
			out = append(out, []dial{d})
			continue
		}
		out[i] = append(out[i], d)
	}
	return out
}

func sameRoute(a, b ports.Path) bool {
	if unserved(a) || unserved(b) {
		return unserved(a) && unserved(b)
	}
	_, restA := arrival(a)
	_, restB := arrival(b)
	return a.Kind == b.Kind && a.Why == b.Why && a.Remedy == b.Remedy &&
		a.Masqueraded == b.Masqueraded &&
		slices.Equal(a.Servers, b.Servers) && slices.Equal(a.Doubt, b.Doubt) &&
		slices.Equal(a.Depends, b.Depends) && slices.Equal(a.Cost, b.Cost) &&
		slices.Equal(restA, restB) && hidden(a) == hidden(b)
}

// unserved reports whether a path ends at an address where no socket listens, for certain.
func unserved(p ports.Path) bool {
	_, rest := arrival(p)
	return p.Kind == ports.Nothing && p.Why.Code == ports.NoSocket && len(rest) == 0 &&
		len(p.Doubt) == 0 && p.Remedy == ""
}

// hidden reports whether the server is known to see another address than the client's.
func hidden(p ports.Path) bool { return p.Seen != "" && p.Seen != p.Source }

// arrival splits a path's hops: by leads to the machine, rest follows.
func arrival(path ports.Path) (by, rest []ports.Hop) {
	i := 0
	for i < len(path.Hops) && isLink(path.Hops[i]) {
		i++
	}
	return path.Hops[:i], path.Hops[i:]
}

// isLink reports whether a hop only passes packets on.
func isLink(h ports.Hop) bool {
	return slices.Contains([]string{"lo", "wire", "veth", "bridge"}, h.Kind)
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
		s = "served by a process that toll may not see"
	}
	switch r.Holder.Kind {
	case "docker-proxy":
		s += fmt.Sprintf("; the socket is docker-proxy's (process %d", r.Holder.PID)
		if r.Holder.Memory > 0 {
			s += fmt.Sprintf(", %s of memory, %s open", mebibytes(r.Holder.Memory),
				units.Plural(r.Holder.Connections, "connection"))
		}
		return s + ")"
	case ports.Gvproxy, ports.Passt:
		return s + fmt.Sprintf(
			"; the socket is %s's (process %d), a relay to a virtual machine's network",
			r.Holder.Kind, r.Holder.PID)
	case ports.Rootlesskit, ports.Pasta, ports.Slirp4netns, ports.Rootlessport:
		return s + fmt.Sprintf(
			"; the socket is %s's (process %d), a relay of a rootless engine", r.Holder.Kind,
			r.Holder.PID)
	case "dockerd":
		return s + fmt.Sprintf("; dockerd (process %d) keeps the socket open and never answers: NAT "+
			"rules redirect the connection first", r.Holder.PID)
	case "rules":
		return s + "; no socket listens: NAT rules redirect it"
	}
	return s
}

// approaches returns the dials' common hops, the addresses that they dial, and the clients'
// addresses that the servers see.
func approaches(dials []dial) (hops []ports.Hop, to, seen []string) {
	by, rest := arrival(dials[0].path)
	hops = dials[0].path.Hops
	var arrivals []string
	for _, d := range dials {
		mine, _ := arrival(d.path)
		to, arrivals = once(to, d.path.Dial), once(arrivals, arrivalText(d, mine))
		if d.path.Seen != "" {
			seen = once(seen, d.path.Seen)
		}
		if !slices.Equal(mine, by) {
			hops = nil
		}
	}
	if hops == nil { // they arrive differently
		hops = append([]ports.Hop{{Kind: "by", Text: strings.Join(arrivals, "; ")}}, rest...)
	}
	return hops, to, seen
}

func once(list []string, word string) []string {
	if slices.Contains(list, word) {
		return list
	}
	return append(list, word)
}

// clientsText names the places of clients, and the addresses that this machine's dial.
func clientsText(dials []dial, other string) string {
	var here, out []string
	for _, d := range dials {
		switch d.client {
		case ports.Loopback, ports.Loopback6:
			here = once(here, string(d.client))
		case ports.OwnAddr:
			own := "its own address"
			if d.path.Source != "" { // of several, each is dialled
				own = host(d.path.Dial)
			}
			here = once(here, own)
		default:
			place := placeText(d)
			if d.client == ports.Remote && d.path.From == "" && other != "" &&
				strings.HasPrefix(d.path.Dial, "[") == strings.Contains(other, ":") {
				place += ", " + other
			}
			out = once(out, place)
		}
	}
	if len(here) > 0 {
		out = append([]string{"this machine, dialling " + orList(here)}, out...)
	}
	return strings.Join(out, "; ")
}

func placeText(d dial) string {
	if d.path.From != "" {
		return d.path.From
	}
	return map[ports.Client]string{ports.OwnAddr: "this machine",
		ports.Neighbour: "a container on the same network",
		ports.Foreign:   "a container on another network", ports.Remote: "another machine"}[d.client]
}

// orList joins words by commas and "or". Of many it has the first eight and the number of the
// others.
func orList(words []string) string {
	const most = 8
	if more := len(words) - most; more > 1 {
		words = append(slices.Clone(words[:most]), fmt.Sprintf("%d more", more))
	}
	return printable.Either(words)
}

func arrivalText(d dial, by []ports.Hop) string {
	switch {
	case d.client != ports.Neighbour && d.client != ports.Remote && d.client != ports.Foreign:
		if len(by) == 0 {
			return "this machine"
		}
		return "this machine by " + by[0].Kind
	case len(by) == 0:
		return clientText(d.client)
	}
	return clientText(d.client) + " by " + by[len(by)-1].Text
}

// measure names commands that measure the port's routes: without details one.
func measure(r *ports.Report, details bool) (out []document.Block) {
	if r.MeasureServer != "" {
		out = append(out, document.Paragraph{
			Text: document.Strongly("To measure").Then(
				" this server over each of its routes, with this client or your own:", document.Plain)},
			document.Command{Line: r.MeasureServer})
	}
	if more := r.TraceServer != "" && tried(r) || len(r.Measure) > 0; more && !details {
		return append(out, document.Paragraph{Style: document.Faint, Text: document.Plainly(
			"Each hop, and commands that trace or compare such routes: --details.")})
	}
	if r.TraceServer != "" && tried(r) { // both need root
		out = append(out, document.Paragraph{Text: document.Strongly("To see").Then(
			" where a request's microseconds go:", document.Plain)},
			document.Command{Line: r.TraceServer})
	}
	if len(r.Measure) == 0 {
		return out
	}
	var items []string
	for _, m := range r.Measure {
		items = append(items, m.Command)
	}
	return append(out,
		document.Paragraph{Text: document.Strongly("To measure").Then(
			" such routes in the lab, and alternatives to them:",
			document.Plain)},
		document.List{Topic: document.Notes, Items: items, Level: 1})
}

// checkedAlike returns the words for connections that all succeeded, as expected; "" for others.
func checkedAlike(all []ports.Check) string {
	var dials []string
	for _, k := range all {
		if k.Got != "connected" || !k.Agrees || k.Detail != "" || k.Expected == ports.Held {
			return ""
		}
		dials = append(dials, k.Dial)
	}
	if len(all) == 0 {
		return ""
	}
	return " by connecting from this machine to " + printable.List(dials) + ": connected."
}

// how returns the words for how the report knows the routes.
func how(r *ports.Report) document.Text {
	if !tried(r) {
		return document.Strongly("Inferred").Then(" from sockets alone: connections were not tried in "+
			"a copy of the machine, which needs root. Rules and routes may change the result.",
			document.Plain)
	}
	return document.Strongly("Tried").Then(
		" each route by connecting in a private copy of this machine's network.", document.Plain)
}

func checks(r *ports.Report, details bool) (out document.Section) {
	if text := checkedAlike(r.Checks); text != "" && !details {
		out.Add(document.Paragraph{Text: document.Strongly("Checked").Then(text, document.Plain)},
			document.Paragraph{Text: how(r)})
		return out
	}
	if len(r.Checks) > 0 {
		out.Add(document.Paragraph{Text: document.Strongly("Checked").Then(
			" by connecting from this machine:", document.Plain)})
	}
	for _, k := range r.Checks {
		text := document.Plainly(fmt.Sprintf(
			"%s: %s in %s ms", k.Dial, k.Got, units.Digits(1000*k.Elapsed)))
		if k.Detail != "" {
			text = text.Then(" ("+k.Detail+")", document.Plain)
		}
		switch {
		case !k.Agrees:
			text = text.Then(
				fmt.Sprintf("; that contradicts %q: toll read something wrongly, or it has changed since",
					k.Expected), document.Bad)
		case k.Got == "closed" && k.Expected == ports.Nothing:
			text = text.Then(": the proxy accepts, though nothing listens behind it",
				document.Plain)
		case k.Got == "connected" && k.Expected == ports.Held:
			text = text.Then(": accepted, but no answer", document.Plain)
		}
		out.Add(document.Paragraph{Level: 1, Text: text})
	}
	out.Add(document.Paragraph{Text: how(r)})
	return out
}
