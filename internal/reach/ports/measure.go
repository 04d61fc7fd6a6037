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
				p.proxy.Rootless && (row.Proto != "tcp" || c == Loopback6 && p.proxy.no6()) {
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
	l, _ := listens(f.Listeners, "tcp", dial)
	p, ok := f.proxyOf(l)
	return p.Container, ok && !p.Rootless
}

// measureServer returns the commands that measure and trace the first server, or "" if there are
// fewer than two routes.
func (f *Facts) measureServer(rows []Row) (measure, trace string) {
	type route struct{ name, dial string }
	var routes []route
	var server Server
	var target netip.AddrPort
	add := func(name, dial string) {
		if !slices.ContainsFunc(routes, func(r route) bool {
			return r.dial == dial || r.name == name
		}) {
			routes = append(routes, route{name, dial})
		}
	}
	for _, c := range []Client{Loopback, OwnAddr} {
		for _, row := range rows {
			p, ok := row.Paths[c]
			if !ok || row.Proto != "tcp" || !p.Answers() || row.Server.Kind != "container" ||
				p.proxy.Rootless || !p.target.IsValid() || f.towards(p.target.Addr()) == "" {
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
	if len(routes) < 2 {
		return "", ""
	}
	what := server.Name + " " + server.Image
	if process := f.processIn(server); process != "" {
		what += " " + process
	}
	measure, address := clientFor(what)
	trace = "sudo toll trace"
	for _, r := range routes {
		at := " " + r.name + "=" + fmt.Sprintf(address, r.dial)
		measure, trace = measure+at, trace+at
	}
	return measure, trace
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
