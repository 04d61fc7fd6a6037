package mode

import (
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// Placement is where the client runs. For a server that toll starts, it is relative to the server's
// machine. For a server that already runs, it is relative to this machine, or to a container or
// network of its Docker Engine.
type Placement string

const (
	FromHost      Placement = "host"      // the server's machine, outside every container
	FromContainer Placement = "container" // another container there
	FromRemote    Placement = "remote"    // another machine, outside every container

	FromRemoteContainer Placement = "remote-container"
)

// Prefixes before the name of a container or network.
const (
	InContainer = "container:"
	OnNetwork   = "network:"
)

// Clients is a set of kinds of clients, whose placements a command accepts.
type Clients int

const (
	OfModes   Clients = 1 << iota // of servers that toll starts, in a mode
	OfServers                     // of servers that run already
)

type form struct {
	Placement
	of   Clients
	help string // "": the word says it
}

var forms = []form{
	{FromHost, OfModes | OfServers, "the machine itself; also called machine"},
	{FromContainer, OfModes, ""},
	{InContainer, OfServers, "inside its network"},
	{OnNetwork, OfServers, "in a new container on it"},
	{FromRemote, OfModes | OfServers, "another machine"},
	{FromRemoteContainer, OfModes, ""},
}

// Words returns the placement in a sentence. "host" becomes "the machine itself", because it is
// also the name of a mode.
func (p Placement) Words() string {
	switch p {
	case FromHost:
		return "the machine itself"
	case FromContainer:
		return "another container"
	case InContainer:
		return "a running container's network"
	case OnNetwork:
		return "a new container on that network"
	case FromRemote:
		return "another machine"
	case FromRemoteContainer:
		return "a container on another machine"
	}
	return string(p)
}

// Placements returns the clients' placements in display order. Those that take a name end with a
// colon.
func (c Clients) Placements() (out []Placement) {
	for _, f := range forms {
		if f.of&c != 0 {
			out = append(out, f.Placement)
		}
	}
	return out
}

func (p Placement) typed() Placement {
	if strings.HasSuffix(string(p), ":") {
		return p + "NAME"
	}
	return p
}

// Parse parses a placement of one of the kinds of clients. It accepts "machine" for "host", because
// that is also the name of a mode.
func (c Clients) Parse(word string) (Placement, error) {
	const longest = 128 // of a container's or network's name
	if word == "machine" {
		return FromHost, nil
	}
	known := c.Placements()
	for i, p := range known {
		known[i] = p.typed()
		name, ok := strings.CutPrefix(word, string(p))
		if ok && known[i] != p && name != "" && len(name) <= longest {
			return Placement(word), nil
		}
	}
	return suggest.Parse("placement", word, known)
}

// Help lists the placements.
func (c Clients) Help() string {
	var usual, further []string
	for _, f := range forms {
		text := string(f.typed())
		if f.help != "" {
			text += " (" + f.help + ")"
		}
		switch {
		case f.of&c == 0:
		case f.of == OfServers && c != OfServers:
			further = append(further, text)
		default:
			usual = append(usual, text)
		}
	}
	out := strings.Join(usual, ", ")
	if further != nil {
		out += "; for a server that runs already also " + strings.Join(further, ", ")
	}
	return out
}

// ParsePlacement parses a placement of a mode's client.
func ParsePlacement(s string) (Placement, error) { return OfModes.Parse(s) }

// Placements returns the placements of modes' clients.
func Placements() []Placement { return OfModes.Placements() }
