package ports

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

// Judge returns the report on a port, or on every port if port is 0.
func Judge(f *Facts, port uint16) *Report {
	r := &Report{Schema: schema, Port: port, Docker: f.Docker, Ports: []Row{}, Traps: []Trap{},
		Missing: append([]Missing{}, f.Missing...), Address: []string{}}
	if f.Client.IsValid() {
		r.Client = f.Client.String()
	}
	for _, six := range []bool{false, true} {
		if a, _ := f.address(six); a.IsValid() {
			r.Address = append(r.Address, a.String())
		}
	}
	r.Proxies = f.allProxies(port)
	rows := f.rows()
	for i := range rows {
		row := &rows[i]
		row.Paths = map[Client]Path{}
		for _, c := range clients {
			if p, ok := f.path(row, c); ok {
				row.Paths[c] = p
			}
		}
		f.settle(row)
	}
	for _, row := range rows {
		if port == 0 || row.Port == port {
			r.Ports = append(r.Ports, row)
		}
	}
	for _, t := range f.traps(rows) {
		if port == 0 || t.about(port) {
			r.Traps = append(r.Traps, t.of(port))
		}
	}
	if port != 0 {
		r.Measure, r.MeasureServer = measures(r.Ports), f.measureServer(r.Ports)
	} else {
		r.Containers = f.homes()
	}
	r.Inside = f.insides(port)
	r.Exposure = r.exposure()
	r.Answer = r.answer()
	return r
}

// dockerd only reserves published ports, so the rules are more precise than its socket.
func (f *Facts) settle(r *Row) {
	if r.Server.Kind == "container" || r.Server.Kind == "service" ||
		r.Holder.Kind == "docker-proxy" || r.Holder.Kind == Rootlesskit {
		return
	}
	for _, c := range clients {
		to := r.Paths[c].target
		if !to.IsValid() {
			continue
		}
		if r.Server.Name == "dockerd" {
			r.Holder = Holder{Kind: "dockerd", PID: r.Server.PID}
		}
		r.Server = f.serverAt(r.Proto, to)
		return
	}
}

// Traps of the whole machine concern each port.
func (t Trap) about(port uint16) bool {
	return len(t.Ports) == 0 || slices.ContainsFunc(t.Ports, func(s string) bool {
		return s == strconv.Itoa(int(port))+"/tcp" || s == strconv.Itoa(int(port))+"/udp"
	})
}

func (f *Facts) rows() []Row {
	var out []Row
	for _, l := range f.Listeners {
		r := newRow(l.Proto, l.Addr)
		if l.Addr.Addr() == netip.IPv6Unspecified() && !l.V6Only {
			r.Family, r.Address = "both", "*"
		}
		if i := slices.IndexFunc(out, r.same); i >= 0 { // SO_REUSEPORT
			continue
		}
		r.Server, r.Holder = f.serverOf(l), f.holderOf(l)
		out = append(out, r)
	}
	for _, c := range f.Containers {
		for _, p := range c.Published {
			r := newRow(p.Proto, p.Host)
			if c.PID == 0 || c.Rootless || p.Host.Port() == 0 || slices.ContainsFunc(out, r.same) {
				continue
			}
			r.Server, r.Holder = f.containerServer(c, p.Port), Holder{Kind: "rules"}
			out = append(out, r)
		}
	}
	out = append(out, f.ruled(out)...)
	slices.SortStableFunc(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Proto, b.Proto),
			a.addr.Compare(b.addr))
	})
	return out
}

func newRow(proto string, at netip.AddrPort) Row {
	r := Row{Port: at.Port(), Proto: proto, Family: "ipv4", Address: at.Addr().String(),
		addr: at.Addr()}
	if at.Addr().Is6() && !at.Addr().Is4In6() {
		r.Family = "ipv6"
	}
	return r
}

func (r Row) same(o Row) bool { return r.Port == o.Port && r.Proto == o.Proto && r.addr == o.addr }

// ruled returns the ports that rules translate and that have no row yet.
func (f *Facts) ruled(have []Row) []Row {
	var out []Row
	for _, c := range f.Rules.Chains {
		for _, rule := range c.Rules {
			if rule.Verdict != "dnat" || rule.Ports.Not || rule.Ports.Low == 0 ||
				rule.Ports.Low != rule.Ports.High || rule.Unread != "" ||
				rule.Proto != "tcp" && rule.Proto != "udp" ||
				slices.ContainsFunc(rule.Sets, firewall.Lookup.ByAddress) {
				continue
			}
			addr := netip.IPv4Unspecified()
			if !c.V4 {
				addr = netip.IPv6Unspecified()
			}
			if p := rule.Dst.Prefix; p.IsValid() && p.IsSingleIP() && !rule.Dst.Not {
				addr = p.Addr()
			}
			r := newRow(rule.Proto, netip.AddrPortFrom(addr, rule.Ports.Low))
			if slices.ContainsFunc(have, r.same) || slices.ContainsFunc(out, r.same) ||
				slices.ContainsFunc(have, r.covered) {
				continue
			}
			r.Holder = Holder{Kind: "rules"}
			to := rule.To
			if !to.Addr().IsValid() {
				to = netip.AddrPortFrom(addr, to.Port())
			}
			r.Server = f.serverAt(rule.Proto, to)
			out = append(out, r)
		}
	}
	return out
}

func (r Row) covered(o Row) bool {
	return r.Port == o.Port && r.Proto == o.Proto && r.concerns(o.addr) &&
		(o.addr.IsUnspecified() || o.Address == "*")
}

func (f *Facts) serverOf(l Listener) Server {
	if p, ok := f.proxyOf(l); ok {
		if c, ok := f.behind(p); ok {
			return f.containerServer(c, p.Container.Port())
		}
		if p.Rootless {
			return Server{Kind: "unknown", Name: p.Container.String() + ", rootless"}
		}
		return f.serverAt(l.Proto, p.Container)
	}
	if holder(l) == "dockerd" || len(l.Owners) == 0 {
		if c, p, ok := f.publisher(l); ok {
			return f.containerServer(c, p.Port)
		}
		if f.ingressPort(l.Proto, l.Addr.Port()) {
			return f.Ingress.server(l.Proto, l.Addr.Port())
		}
	}
	if len(l.Owners) == 0 {
		return Server{Kind: "unknown"}
	}
	o := l.Owners[0]
	c, known := f.byID(o.Container)
	if known && c.Host {
		return Server{Kind: "container", Name: c.Name, Image: c.Image, ID: c.ID, PID: o.PID,
			Port: l.Addr.Port(), Network: "host", State: c.state()}
	}
	// A process of a container with its own network left that network, or got this socket from
	// elsewhere: the container is not the server.
	if o.Container != "" && !known {
		return Server{Kind: "container", Name: short(o.Container), ID: o.Container, PID: o.PID,
			Port: l.Addr.Port(), Network: "host"}
	}
	return Server{Kind: "process", Name: o.Name, PID: o.PID}
}

func (f *Facts) serverAt(proto string, to netip.AddrPort) Server {
	if c, ok := f.at(to.Addr()); ok {
		return f.containerServer(c, to.Port())
	}
	if f.Ingress.Addr.IsValid() && to.Addr() == f.Ingress.Addr {
		return f.Ingress.server(proto, to.Port())
	}
	if l, ok := listens(f.Listeners, proto, to); ok &&
		(to.Addr().IsUnspecified() || f.own(to.Addr())) {
		return f.serverOf(l)
	}
	return Server{Kind: "unknown", Name: to.String()}
}

func (f *Facts) publisher(l Listener) (Container, Published, bool) {
	for _, c := range f.Containers {
		for _, p := range c.Published {
			if c.PID != 0 && p.Proto == l.Proto && p.Host == l.Addr {
				return c, p, true
			}
		}
	}
	return Container{}, Published{}, false
}

// In a shared network, the server is the container whose process listens.
func (f *Facts) containerServer(c Container, port uint16) Server {
	s := Server{Kind: "container", Name: c.Name, Image: c.Image, ID: c.ID, PID: c.PID, Port: port,
		State: c.state()}
	for _, l := range c.Listeners {
		if l.Addr.Port() != port || len(l.Owners) == 0 {
			continue
		}
		s.PID = l.Owners[0].PID
		for _, o := range f.sharing(c)[1:] {
			if o.ID == l.Owners[0].Container {
				s.Name, s.Image, s.ID = o.Name, o.Image, o.ID
				s.Network, s.State = "container:"+c.Name, o.state()
			}
		}
	}
	return s
}

const statePaused = "paused"

// state returns why the container cannot answer, or "".
func (c Container) state() string {
	if c.State == statePaused {
		return c.State
	}
	return ""
}

func (f *Facts) holderOf(l Listener) Holder {
	if p, ok := f.proxyOf(l); ok {
		_, n := f.carried(p)
		return Holder{Kind: p.Name(), PID: p.PID, Memory: p.Memory, Connections: n}
	}
	switch {
	case len(l.Owners) == 0:
		return Holder{Kind: "unknown"}
	case f.keeps(l):
		return Holder{Kind: "dockerd", PID: l.Owners[0].PID}
	}
	return Holder{Kind: "server", PID: l.Owners[0].PID}
}

func short(id string) string { return id[:min(len(id), 12)] }

func (s Server) describe() string {
	switch s.Kind {
	case "container":
		return "container " + s.Name
	case "service":
		return "service " + s.Name
	case "process":
		return fmt.Sprintf("%s %d", s.Name, s.PID)
	}
	return "a process that toll may not see"
}
