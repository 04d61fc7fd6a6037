package ports

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Judge returns the report on a port, or on every port if port is 0. Its paths are those tried in
// f.Copy, or what the sockets suggest if f.Copy is nil.
func Judge(f *Facts, port uint16) *Report {
	f.makeIndex()
	r := &Report{Schema: schema, Port: port, Docker: f.Docker, Ports: []Row{}, Traps: []Trap{},
		Missing: append([]Missing{}, f.Missing...), Address: []string{}, guessed: f.Copy == nil,
		cards: f.cards(), devices: f.Devices}
	if f.Copy != nil {
		r.Missing = append(r.Missing, f.Copy.Left...)
	}
	if f.Client.IsValid() {
		r.Client = f.Client.String()
		for _, p := range f.machines(f.Client.Is6()) {
			r.ClientDials = p.addrs[0].String()
		}
	}
	for _, six := range []bool{false, true} {
		if a, _ := f.address(six); a.IsValid() {
			r.Address = append(r.Address, a.String())
		}
	}
	r.Proxies = f.allProxies(port)
	rows := f.rows()
	if f.Copy != nil {
		rows = f.Copy.fill(rows)
	} else {
		f.suppose(rows)
	}
	for i := range rows {
		f.settle(&rows[i])
		f.doubtOutside(rows[i].Paths, rows[i].Dials)
	}
	for _, row := range rows {
		if port == 0 || row.Port == port && f.about(row.Proto) {
			r.Ports = append(r.Ports, row)
		}
	}
	for _, t := range f.traps(rows) {
		if port == 0 || t.about(port) {
			r.Traps = append(r.Traps, t.of(port))
		}
	}
	if port != 0 {
		r.Measure = measures(r.Ports)
		r.MeasureServer, r.TraceServer = f.measureServer(r.Ports)
	} else {
		r.Containers, r.Networks = f.homes(), f.Networks
	}
	r.Inside = slices.DeleteFunc(f.insides(port), func(in Inside) bool { return !f.about(in.Proto) })
	for _, in := range r.Inside {
		f.doubtOutside(in.Paths, in.Dials)
	}
	r.Exposure = r.exposure()
	r.Answer = r.answer()
	return r
}

// about reports whether the report is about a protocol.
func (f *Facts) about(proto string) bool { return f.Proto == "" || f.Proto == proto }

// settle sets the server from the answers where sockets and Docker do not name it.
func (f *Facts) settle(r *Row) {
	f.onDemand(r)
	if r.Server.Kind == "container" || r.Server.Kind == "service" ||
		r.Holder.Kind == "docker-proxy" || IsRelay(r.Holder.Kind) {
		return
	}
	for _, p := range r.Dials {
		if p.Kind != ByNAT && p.Kind != Hairpin && r.Holder.Kind != "rules" {
			continue
		}
		if r.Server.Kind == "process" && slices.Contains(reservers, r.Server.Name) {
			r.Holder = Holder{Kind: r.Server.Name, PID: r.Server.PID}
		}
		switch {
		case p.server.Kind != "":
			r.Server = p.server
		case p.target.IsValid() && p.nobody != "":
			r.Server = f.serverAt(r.Proto, p.target)
		default:
			continue
		}
		return
	}
}

// onDemand allows for engines that start docker-proxy when a client connects, and have rules only
// for the machine's own address. Engines up to 29 start it with the container.
func (f *Facts) onDemand(r *Row) {
	own, ok := r.Paths[OwnAddr]
	if r.Holder.Kind != "dockerd" || !ok || own.Kind != ByNAT || r.Paths[Loopback].Kind != Held {
		return
	}
	change := func(p Path) Path {
		if p.Kind != Held || p.server.State != "" {
			return p
		}
		p.Kind, p.Why, p.Masqueraded = ByProxy, Reason{}, true
		p.Hops = append(slices.Clip(p.Hops[:len(p.Hops)-1]),
			Hop{"proxy", "docker-proxy, once dockerd has started it"})
		p.Doubt = once(p.Doubt, Reason{Code: ProxyOnDemand})
		return p
	}
	for c, p := range r.Paths {
		r.Paths[c] = change(p)
	}
	for i, p := range r.Dials {
		r.Dials[i] = change(p)
	}
}

// HasLoopback reports whether a loopback address is one of the machine's: with IPv6 turned off, ::1 is
// not. It is supposed if the loopback device is not known.
func (f *Facts) HasLoopback(a netip.Addr) bool {
	i := slices.IndexFunc(f.Devices, func(d Device) bool { return d.Kind == "loopback" })
	return i < 0 || slices.ContainsFunc(f.Devices[i].Addrs, func(p netip.Prefix) bool {
		return p.Addr() == a
	})
}

// doubtOutside allows for the machine around a container, whose network is all that is known: who
// gets to that network is decided outside of it.
func (f *Facts) doubtOutside(paths map[Client]Path, dials []Path) {
	if f.Contained == "" {
		return
	}
	doubt := func(p Path) Path {
		if p.Client == Remote && p.Kind != Blocked && p.Kind != Nothing {
			p.Doubt = once(p.Doubt, Reason{Code: AroundIt, Of: f.Contained})
		}
		return p
	}
	for c, p := range paths {
		paths[c] = doubt(p)
	}
	for i, p := range dials {
		dials[i] = doubt(p)
	}
}

// about reports whether the trap concerns a port. Traps of the whole machine concern every port.
func (t Trap) about(port uint16) bool {
	return len(t.Ports) == 0 || slices.ContainsFunc(t.Ports, func(s string) bool {
		return s == strconv.Itoa(int(port))+"/tcp" || s == strconv.Itoa(int(port))+"/udp"
	})
}

func (f *Facts) rows() []Row {
	var out []Row
	at := map[service][]int{} // indexes by protocol and port
	key := func(r Row) service { return service{r.Proto, netip.AddrPortFrom(netip.Addr{}, r.Port)} }
	has := func(r Row, like func(Row) bool) bool {
		return slices.ContainsFunc(at[key(r)], func(i int) bool { return like(out[i]) })
	}
	add := func(r Row) {
		at[key(r)] = append(at[key(r)], len(out))
		out = append(out, r)
	}
	for _, l := range f.Listeners {
		r := newRow(l.Proto, l.Addr)
		if l.Addr.Addr() == netip.IPv6Unspecified() && !l.V6Only {
			r.Family, r.Address = "both", "*"
		}
		if has(r, r.same) { // SO_REUSEPORT
			continue
		}
		r.Server, r.Holder = f.serverOf(l), f.holderOf(l)
		add(r)
	}
	for _, c := range f.Containers {
		for _, p := range c.Published {
			r := newRow(p.Proto, p.Host)
			if c.PID == 0 || c.Rootless || p.Host.Port() == 0 || has(r, r.same) {
				continue
			}
			r.Server, r.Holder = f.containerServer(c, p.Port), Holder{Kind: "rules"}
			add(r)
		}
	}
	if f.Copy != nil {
		for _, x := range f.Copy.found {
			r := newRow(x.proto, x.at)
			if has(r, func(o Row) bool {
				return o.concerns(x.at.Addr().Is6()) && (o.addr.IsUnspecified() || o.Address == "*")
			}) {
				continue
			}
			r.found, r.Holder, r.Server = true, Holder{Kind: "rules"}, Server{Kind: "unknown"}
			add(r)
		}
	}
	sortRows(out)
	return out
}

func sortRows(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Proto, b.Proto),
			a.addr.Compare(b.addr))
	})
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

// mostProxies is the most proxies in a row that are followed. More dial each other.
const mostProxies = 8

func (f *Facts) serverOf(l Listener) Server { return f.serverBehind(l, mostProxies) }

// serverBehind is serverOf, for at most that many proxies in a row.
func (f *Facts) serverBehind(l Listener, proxies int) Server {
	if p, ok := f.proxyOf(l); ok {
		if c, ok := f.behind(p); ok {
			return f.containerServer(c, p.Container.Port())
		}
		if p.Rootless {
			return p.unknownBehind()
		}
		return f.serverAtBehind(l.Proto, p.Container, proxies-1)
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
	if IsRelay(o.Name) {
		return Proxy{Program: o.Name, Rootless: true}.unknownBehind()
	}
	c, known := f.byID(o.Container)
	if known && c.Host {
		return Server{Kind: "container", Name: c.Name, Image: c.Image, ID: c.ID, PID: o.PID,
			Port: l.Addr.Port(), Network: "host", State: c.state()}
	}
	if c, ok := f.inSpace(o.Space); ok { // it got the socket from a process here
		s := Server{Kind: "container", Name: c.Name, Image: c.Image, ID: c.ID, PID: o.PID,
			Port: l.Addr.Port(), State: c.state()}
		if c.ID == "" {
			s.Name = NameOf(o.Name)
		}
		return s
	}
	// The process of a container with its own network has left that network, so the container is
	// not the server.
	if o.Container != "" && !known {
		return Server{Kind: "container", Name: short(o.Container), ID: o.Container, PID: o.PID,
			Port: l.Addr.Port(), Network: "host"}
	}
	return Server{Kind: "process", Name: namesOf(l.Owners), PID: o.PID}
}

// NameOf returns the name of a container that no engine knows, whose process has the name.
func NameOf(process string) string { return process + " (own network)" }

// namesOf returns the names of the processes that may serve a socket, such as "nginx" or
// "nginx or sh". The first of owners serves it if only one does.
func namesOf(owners []Process) string {
	const most = 3
	var names []string
	for _, o := range owners {
		if !slices.Contains(keepers, o.Name) {
			names = once(names, o.Name)
		}
	}
	if len(names) == 0 {
		return owners[0].Name
	}
	if len(names) > most {
		names = append(names[:most:most], "others")
	}
	return strings.Join(names, " or ")
}

func (f *Facts) serverAt(proto string, to netip.AddrPort) Server {
	return f.serverAtBehind(proto, to, mostProxies)
}

func (f *Facts) serverAtBehind(proto string, to netip.AddrPort, proxies int) Server {
	if c, ok := f.at(to.Addr()); ok {
		return f.containerServer(c, to.Port())
	}
	if f.Ingress.Addr.IsValid() && to.Addr() == f.Ingress.Addr {
		return f.Ingress.server(proto, to.Port())
	}
	if l, ok := f.listens(proto, to); ok && proxies > 0 &&
		(to.Addr().IsUnspecified() || f.own(to.Addr())) {
		return f.serverBehind(l, proxies)
	}
	return Server{Kind: "unknown", Name: to.String()}
}

func (f *Facts) publisher(l Listener) (Container, Published, bool) {
	x, ok := f.indexed().publishedAt[service{l.Proto, l.Addr}]
	if !ok {
		return Container{}, Published{}, false
	}
	return *x.container, x.port, true
}

// containerServer returns the server of a container's port: in a shared network, the container
// whose process listens.
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
		return Holder{Kind: p.name(), PID: p.PID, Memory: p.Memory, Connections: n}
	}
	switch {
	case len(l.Owners) == 0:
		return Holder{Kind: "unknown"}
	case f.keeps(l), IsRelay(holder(l)):
		return Holder{Kind: holder(l), PID: l.Owners[0].PID}
	}
	return Holder{Kind: "server", PID: l.Owners[0].PID}
}

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

func short(id string) string { return id[:min(len(id), 12)] }

// Keepers lists programs that open sockets for the programs that they start.
func Keepers() []string { return slices.Clone(keepers) }

var keepers = []string{"systemd", "conmon", "podman", "netavark", "aardvark-dns"}

// reservers lists programs whose sockets only reserve ports that rules serve.
var reservers = []string{"dockerd", "conmon"}

// keeps reports whether the socket only reserves the port.
func (f *Facts) keeps(l Listener) bool {
	if holder(l) != "dockerd" {
		return slices.Contains(reservers, holder(l))
	}
	if f.Docker != "" {
		_, _, ok := f.publisher(l)
		return ok || f.ingressPort(l.Proto, l.Addr.Port())
	}
	return !slices.Contains([]uint16{2375, 2376, 2377, 4243, 7946}, l.Addr.Port())
}

func holder(l Listener) string {
	if len(l.Owners) == 0 {
		return "unknown"
	}
	return l.Owners[0].Name
}
