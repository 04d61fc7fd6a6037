package view

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

const insideLegend = "Clients dial the container's own address. another network: a container on " +
	"another of this machine's bridges. another machine also needs a route to the address."

func insides(r *ports.Report) []document.Section {
	if len(r.Inside) == 0 {
		return nil
	}
	server, networks := texts("", "served by"), texts("", "networks")
	server.Cut, server.Least, networks.Spare = document.CutEnd, serverWidth, true
	t := document.Table{Level: 1, Layouts: narrower,
		Columns: []document.Column{texts("", "address"), server, networks,
			texts("this", "machine"), texts("its", "network"), texts("another", "network"),
			texts("another", "machine")}}
	for _, group := range insideRows(oneFamily(r.Inside)) {
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
		Blocks: []document.Block{t, faint(insideLegend)}}}
}

// oneFamily leaves out addresses of IPv6 at which clients get the same as at the server's IPv4
// address.
func oneFamily(list []ports.Inside) []ports.Inside {
	return slices.DeleteFunc(slices.Clone(list), func(x ports.Inside) bool {
		return strings.HasPrefix(x.Dial, "[") && slices.ContainsFunc(list, func(o ports.Inside) bool {
			return o.Server == x.Server && o.Port == x.Port && o.Proto == x.Proto &&
				!strings.HasPrefix(o.Dial, "[") && sameKinds(o, x)
		})
	})
}

// sameKinds reports whether each kind of client gets the same on both.
func sameKinds(a, b ports.Inside) bool {
	return !slices.ContainsFunc(ports.Insiders(), func(c ports.Client) bool {
		return kindText(a.Paths[c]) != kindText(b.Paths[c])
	})
}

func insideRows(list []ports.Inside) [][]ports.Inside {
	at := func(x ports.Inside) (uint16, string) { return x.Port, x.Proto }
	return ports.Fold(list, at, func(have []ports.Inside, next ports.Inside) bool {
		a, b := have[0], next
		return a.Server.ID == b.Server.ID && a.Server.Name == b.Server.Name &&
			a.Server.PID == b.Server.PID && host(a.Dial) == host(b.Dial) && sameKinds(a, b)
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

// manyProcesses is the number of a container's processes from which on only the first ones are
// listed.
const manyProcesses = 10

// tops lists the containers' processes, as docker top does.
func tops(r *ports.Report) []document.Section {
	name, list := texts("", "container"), texts("", "processes")
	name.Cut, name.Least = document.CutEnd, serverWidth
	t := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{name, list}}
	for _, h := range r.Containers {
		var all []string
		for i, p := range h.Processes {
			if i == manyProcesses {
				all = append(all, fmt.Sprintf("%d more: docker top %s",
					len(h.Processes)-i, h.Name))
				break
			}
			all = append(all, fmt.Sprintf("%d %s", p.PID, p.Name))
		}
		if len(all) > 0 {
			t.Rows = append(t.Rows, document.Row{
				Cells: document.Texts(h.Name, strings.Join(all, ", "))})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []document.Section{{Title: document.Strongly("Processes in containers").Then(
		", with this machine's PIDs", document.Plain), Blocks: []document.Block{t}}}
}

func networks(r *ports.Report) []document.Section {
	if len(r.Networks) == 0 {
		return nil
	}
	t := document.Table{Level: 1, Layouts: onlyGaps, Columns: []document.Column{
		texts("", "network"), texts("", "driver"), texts("", "scope"), texts("", "addresses")}}
	for _, n := range r.Networks {
		var pools []string
		for _, p := range n.Pools {
			pools = append(pools, p.String())
		}
		t.Rows = append(t.Rows, document.Row{Cells: document.Texts(n.Name, n.Driver, n.Scope,
			orDash(strings.Join(pools, ", ")))})
	}
	return []document.Section{{Title: document.Strongly("Networks"), Blocks: []document.Block{t}}}
}
