package ports

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Measure is a command that measures the kinds of routes that a port has.
type Measure struct {
	Clients []Client `json:"clients"`
	Command string   `json:"command"`

	from, proto    string
	modes, targets []string
}

func measures(rows []Row) []Measure {
	var out []Measure
	for _, c := range clients {
		for _, row := range rows {
			p, ok := row.Paths[c]
			want := cellOf(c, p)
			if !ok || want.mode == "" || row.Server.Kind == "service" ||
				p.rootless() && (row.Proto != "tcp" || c == Loopback6 && p.proxy.no6()) {
				continue
			}
			i := slices.IndexFunc(out, func(m Measure) bool {
				return m.from == want.from && m.proto == row.Proto
			})
			if i < 0 {
				out = append(out, Measure{from: want.from, proto: row.Proto})
				i = len(out) - 1
			}
			out[i].add(c, want)
		}
	}
	for i := range out {
		out[i].Command = out[i].command()
	}
	return out
}

func (m *Measure) add(c Client, want cell) {
	m.Clients = once(m.Clients, c)
	m.modes = once(m.modes, want.mode)
	target := map[Client]string{Loopback: "loopback", Loopback6: "loopback6", OwnAddr: "address"}[c]
	if target != "" {
		m.targets = once(m.targets, target)
	}
}

func once[T comparable](have []T, x T) []T {
	if slices.Contains(have, x) {
		return have
	}
	return append(have, x)
}

// no6 reports whether the relay's mode has no IPv6.
func (p Proxy) no6() bool {
	return p.Program == Slirp4netns || p.Program == Rootlessport || p.mode() == "rootless-publish-nat"
}

// command returns the command line. It leaves out modes without such a route
// (internal/record/mode): rules do not translate ::1, and a proxy's client does not dial the
// machine's address.
func (m *Measure) command() string {
	modes := m.modes
	only := func(target string) bool { return slices.Equal(m.targets, []string{target}) }
	if slices.Equal(modes, []string{"rootless-publish"}) {
		modes = append(modes, "rootless-publish-nat")
	}
	if !only("address") {
		modes = once(modes, "publish-proxy")
	}
	if !only("loopback6") {
		modes = once(modes, "publish-nat")
	}
	words := append([]string{"toll compare"}, modes...)
	words = append(words, "--from", m.from)
	if len(m.targets) > 0 {
		words = append(words, "--to", strings.Join(m.targets, ","))
	}
	if m.proto == "udp" {
		words = append(words, "--load", "udp-rr")
	}
	return strings.Join(words, " ")
}

// Through returns the container's address behind the docker-proxy that relays a connection of this
// machine to a TCP address. ok is false if none does, or if that is unknown.
func Through(f *Facts, dial netip.AddrPort) (behind netip.AddrPort, ok bool) {
	dial = netip.AddrPortFrom(dial.Addr().Unmap(), dial.Port())
	if !dial.Addr().IsLoopback() { // rules decide
		return behind, false
	}
	l, _ := f.listens("tcp", dial)
	p, ok := f.proxyOf(l)
	return p.Container, ok && !p.Rootless
}

// serverRoute is a route of this machine's to a server.
type serverRoute struct{ name, dial string }

// routesTo returns the routes to the first container's server over a protocol, the direct one
// first.
func (f *Facts) routesTo(rows []Row, proto string) (routes []serverRoute, server Server) {
	var target netip.AddrPort
	add := func(name, dial string) {
		if !slices.ContainsFunc(routes, func(r serverRoute) bool {
			return r.dial == dial || r.name == name
		}) {
			routes = append(routes, serverRoute{name, dial})
		}
	}
	for _, c := range []Client{Loopback, OwnAddr} {
		for _, row := range rows {
			p, ok := row.Paths[c]
			if !ok || row.Proto != proto || !p.Answers() || row.Server.Kind != "container" ||
				p.rootless() || !p.target.IsValid() || f.towards(p.target.Addr()) == "" {
				continue
			}
			if len(routes) == 0 {
				server, target = row.Server, p.target
				add("direct", target.String())
			}
			if p.target != target {
				continue
			}
			add(map[PathKind]string{ByProxy: "proxy", ByNAT: "nat", ByShortcut: "fast"}[p.Kind],
				p.Dial)
		}
	}
	return routes, server
}

const traceCommand = "sudo toll trace"

// measureServer returns the commands that measure and trace the first server, or "" if there are
// fewer than two routes. The requests to a server of UDP are traced over any number of them.
func (f *Facts) measureServer(rows []Row) (measure, trace string) {
	routes, server := f.routesTo(rows, "tcp")
	if len(routes) < 2 {
		return "", f.traceDatagrams(rows)
	}
	what := server.Name + " " + server.Image
	if process := f.processIn(server); process != "" {
		what += " " + process
	}
	measure, address := clientFor(what)
	return measure + named(routes, address), traceCommand + named(routes, address)
}

// named returns routes as arguments, at addresses of a form.
func named(routes []serverRoute, address string) string {
	out := ""
	for _, r := range routes {
		out += " " + r.name + "=" + fmt.Sprintf(address, r.dial)
	}
	return out
}

// traceDatagrams returns the command that traces requests over UDP, or "" if no such server is
// reached from this machine: toll's own queries over each route to a DNS server, or those of the
// clients that a server has.
func (f *Facts) traceDatagrams(rows []Row) string {
	const dns = 53
	if routes, server := f.routesTo(rows, "udp"); len(routes) > 1 && server.Port == dns {
		return traceCommand + named(routes, "dns://%s/example.org")
	} else if len(routes) > 0 {
		return traceCommand + " --attach " + routes[0].dial + "/udp"
	}
	for _, c := range []Client{Loopback, OwnAddr} {
		for _, row := range rows {
			if p, ok := row.Paths[c]; ok && row.Proto == "udp" && p.Kind == Direct {
				return traceCommand + " --attach " + p.Dial + "/udp"
			}
		}
	}
	return ""
}

func (f *Facts) processIn(s Server) string {
	c, ok := f.byID(s.ID)
	if !ok {
		return ""
	}
	for _, l := range c.Listeners {
		if l.Proto == "tcp" && l.Addr.Port() == s.Port && len(l.Owners) > 0 {
			return l.Owners[0].Name
		}
	}
	return ""
}

// knownClients lists clients for known servers. One of the words must occur in the name of the
// container, its image or its process.
var knownClients = []struct{ words, command, address string }{
	{"redis valkey", "toll run --recipe redis", "%s"},
	{"postgres", "toll sql", "postgres://postgres@%s/postgres"},
	{"mysql mariadb", "toll sql", "mysql://root@%s/mysql"},
	{"ollama vllm llama", "toll stream", "http://%s"},
	{"nginx httpd apache caddy traefik haproxy", "toll run --recipe wrk", "%s"},
}

func clientFor(names string) (command, address string) {
	names = strings.ToLower(names)
	for _, k := range knownClients {
		if slices.ContainsFunc(strings.Fields(k.words), func(w string) bool {
			return strings.Contains(names, w)
		}) {
			return k.command, k.address
		}
	}
	return "toll run --client 'curl -sSo /dev/null http://{addr}/'", "%s"
}
