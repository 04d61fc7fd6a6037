package view

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Words for what connections to a socket got whose program is not known.
const accepted, closed = "accepted", "closed"

// routeWords explains words in the table's cells.
var routeWords = []struct{ word, means string }{
	{string(ports.Direct), "the server's own socket"},
	{string(ports.ByProxy), "docker-proxy or a relay passes it on"},
	{string(ports.ByShortcut), "toll fast redirects it to the container"},
	{string(ports.ByNAT), "rules send it to the container"},
	{string(ports.Hairpin), "rules send it back to the bridge it came from"},
	{string(ports.Held), "accepted, but no answer"},
	{accepted, "a connection is accepted, by which program is not known"},
	{closed, "accepted, and closed at once"},
	{string(ports.Blocked), "no answer, see Why"},
	{string(ports.Nothing), "no program listens"},
	{"?", "not everything that decides it is known"},
	{"*", "not the same for all such clients or addresses"},
}

// numbered returns a server without its port, and the port.
func numbered(s ports.Server) (ports.Server, uint16) {
	port := s.Port
	if at, err := netip.ParseAddrPort(s.Name); err == nil && s.Kind == "unknown" {
		s.Name, port = at.Addr().String(), at.Port()
	}
	s.Port = 0
	return s, port
}

// serverCell returns a cell whose short text has the port, but not the image.
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

// kindText returns the kind of a path's route, with ? for doubts and * for conditions; "" if there
// is no path.
func kindText(p ports.Path) string {
	switch {
	case p.Kind == ports.Unknown && p.Tried == "connected":
		return accepted
	case p.Kind == ports.Unknown && p.Tried == closed:
		return closed
	case p.Kind == ports.Unknown:
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

func metricName(m string) string { return strings.ReplaceAll(m, "_", " ") }

func clientText(c ports.Client) string {
	return map[ports.Client]string{ports.Loopback: "127.0.0.1", ports.Loopback6: "::1",
		ports.OwnAddr:   "own address",
		ports.Neighbour: "a container", ports.Foreign: "a container on another network",
		ports.Remote: "another machine"}[c]
}
