package ports

import (
	"net/netip"
	"slices"
)

// fill adds each connection's path to the row that it concerns. It adds rows for what answers
// instead of a row's server, and removes rows of ports that were only tried.
func (c *Copy) fill(rows []Row) []Row {
	for i := range rows {
		rows[i].Paths = map[Client]Path{}
	}
	at := byService(rows)
	c.makeRoom(rows, at)
	for _, q := range c.asked {
		if q.server != nil || q.bridge != "" {
			continue
		}
		p, ok := c.path(q)
		if !ok {
			continue
		}
		k := portOfService(q.service)
		here := at[k]
		i := rowOf(rows, here, q, p)
		if i >= 0 && rows[i].passed(p) {
			p.server = c.f.serverAt(q.proto, p.target)
		}
		switch {
		case i >= 0 && rows[i].replaced(p):
			j := slices.IndexFunc(here, func(j int) bool {
				return rows[j].instead && rows[j].Server == p.server && rows[j].concerns(
					q.at.Addr().Is6())
			})
			if j < 0 {
				rows = append(rows, replacement(q, p, rows[i].addr))
				at[k] = append(here, len(rows)-1)
				rows[len(rows)-1].add(p)
				continue
			}
			rows[here[j]].add(p)
		case i >= 0:
			rows[i].add(p)
		case p.Answers(): // rules for an address without a socket
			rows = append(rows, replacement(q, p, netip.Addr{}))
			at[k] = append(here, len(rows)-1)
			rows[len(rows)-1].add(p)
		default:
			rows = spread(rows, p, q.service)
		}
	}
	c.addInside(rows)
	rows = withoutTried(rows)
	for i := range rows {
		rows[i].dropAlike()
		rows[i].atItsAddress()
		rows[i].compare()
	}
	sortRows(rows)
	return rows
}

// makeRoom makes room for the connections to rows: thousands, each of a kilobyte.
func (c *Copy) makeRoom(rows []Row, at map[service][]int) {
	n := map[service]int{}
	for i := range c.asked {
		if q := &c.asked[i]; q.server == nil && q.bridge == "" {
			n[portOfService(q.service)]++
		}
	}
	for k, here := range at {
		for _, i := range here {
			rows[i].Dials = make([]Path, 0, n[k]/len(here))
		}
	}
}

// byService returns the indexes of rows by protocol and port.
func byService(rows []Row) map[service][]int {
	at := map[service][]int{}
	for i, r := range rows {
		k := portOfService(service{r.Proto, netip.AddrPortFrom(r.addr, r.Port)})
		at[k] = append(at[k], i)
	}
	return at
}

func portOfService(s service) service {
	return service{s.proto, netip.AddrPortFrom(netip.Addr{}, s.at.Port())}
}

// spread adds a path to all rows of a port, whose sockets are on other addresses.
func spread(rows []Row, p Path, s service) []Row {
	if p.lost != nil {
		p.Why = Reason{Code: LostBesides, At: p.Dial, Lost: *p.lost}
		p.lost, p.Remedy, p.vain = nil, "", true
		p.Trial = nil
	}
	for i := range rows {
		if r := &rows[i]; r.Port == s.at.Port() && r.Proto == s.proto &&
			r.concerns(s.at.Addr().Is6()) {
			r.add(p)
		}
	}
	return rows
}

// withoutTried returns the rows that a socket or a rule serves. They take over the paths of the
// others.
func withoutTried(rows []Row) []Row {
	var out, tried []Row
	for _, r := range rows {
		if r.found && !r.led() {
			tried = append(tried, r)
		} else {
			out = append(out, r)
		}
	}
	for _, r := range tried {
		for _, p := range r.Dials {
			out = spread(out, p, service{r.Proto, netip.AddrPortFrom(r.addr, r.Port)})
		}
	}
	return out
}

// rowOf returns the index of the row whose socket took the connection, else of the row nearest to
// the dialled address. It returns -1 if there is no such row.
func rowOf(rows []Row, here []int, q asked, p Path) int {
	best, rank := -1, 0
	for _, i := range here {
		r := &rows[i]
		score := 0
		switch {
		case r.instead || !r.concerns(q.at.Addr().Is6()):
			continue
		case p.inode != 0 && r.addr == p.socket.Addr() && p.socket.Port() == r.Port:
			score = 4
		case r.addr.Unmap() == q.at.Addr():
			score = 3
		case r.Family == "both":
			score = 1
		case r.addr.IsUnspecified():
			score = 2
		}
		if score > rank {
			best, rank = i, score
		}
	}
	return best
}

func (r *Row) add(p Path) {
	r.Dials = append(r.Dials, p)
	if _, ok := r.Paths[p.Client]; !ok && !p.self {
		r.Paths[p.Client] = p
	}
}

// replaced reports whether rules redirect connections to another server than the row's.
func (r *Row) replaced(p Path) bool {
	led := p.Kind == ByNAT || p.Kind == Hairpin || r.passed(p) ||
		p.moved && (p.socket.Port() != r.Port || p.socket.Addr() != r.addr)
	if r.found || !led || p.server.Kind == "" || r.Holder.Kind == "unknown" ||
		slices.Contains(p.Servers, r.Server.describe()) {
		return false
	}
	switch r.Server.Kind {
	case "container":
		return p.server.ID != r.Server.ID && r.Server.ID != ""
	case "process":
		return !slices.Contains(reservers, r.Server.Name)
	}
	return false
}

// passed reports whether rules redirect connections past the row's program to where nothing
// answers.
func (r *Row) passed(p Path) bool {
	return r.Server.Kind == "process" && (p.Kind == Nothing || p.Kind == Blocked) &&
		p.target.IsValid() && p.target.String() != p.Dial
}

// replacement returns a row for what answers instead of a socket at the address.
func replacement(q asked, p Path, at netip.Addr) Row {
	switch {
	case at.IsValid() && !at.IsUnspecified():
	case q.at.Addr().Is6():
		at = netip.IPv6Unspecified()
	default:
		at = netip.IPv4Unspecified()
	}
	out := newRow(q.proto, netip.AddrPortFrom(at, q.at.Port()))
	out.Server, out.Holder, out.instead = p.server, Holder{Kind: "rules"}, true
	out.Paths = map[Client]Path{}
	return out
}

// dropAlike removes the paths of a server's own container that do not differ from those of other
// containers to the same address.
func (r *Row) dropAlike() {
	alike := func(p *Path) bool {
		for i := range r.Dials {
			if o := &r.Dials[i]; !o.self && o.Client == Neighbour && o.Dial == p.Dial &&
				o.Answers() == p.Answers() {
				return true
			}
		}
		return false
	}
	var drop []int
	for i := range r.Dials {
		if p := &r.Dials[i]; p.self && alike(p) {
			drop = append(drop, i)
		}
	}
	for _, i := range slices.Backward(drop) {
		r.Dials = slices.Delete(r.Dials, i, i+1)
	}
}

// atItsAddress makes the paths to the row's own address, if it has one, those of its clients.
func (r *Row) atItsAddress() {
	at := netip.AddrPortFrom(r.addr.Unmap(), r.Port).String()
	for client := range r.Paths {
		i := slices.IndexFunc(r.Dials, func(p Path) bool {
			return p.Client == client && p.Dial == at && !p.self
		})
		if i >= 0 && !r.addr.IsUnspecified() {
			r.Paths[client] = r.Dials[i]
		}
	}
}

// led reports whether rules redirect connections to the port. A packet that was lost proves that
// only if its destination was translated.
func (r *Row) led() bool {
	return slices.ContainsFunc(r.Dials, Path.led)
}

func (p Path) led() bool {
	return p.Answers() || p.nobody != "" || p.Kind == Held ||
		p.Block != nil && p.target.String() != p.Dial
}

// compare records where clients of the same kind get different results.
func (r *Row) compare() {
	for i := range r.Dials {
		p := &r.Dials[i]
		for j := range r.Dials {
			o := &r.Dials[j]
			if p.Client == o.Client && p.Answers() != o.Answers() && !o.own &&
				(p.Client == Remote && p.Dial == o.Dial || p.besides(o) ||
					p.Client == OwnAddr && p.Dial != o.Dial && r.addr.IsUnspecified()) {
				who := o.From
				if who == "" {
					who = o.Dial
				}
				p.Depends = once(p.Depends, who+": "+string(o.Kind))
			}
		}
		if first, ok := r.Paths[p.Client]; ok && first.Dial == p.Dial && first.From == p.From {
			r.Paths[p.Client] = *p
		}
	}
}

// Single reports whether rules may treat the client, a container, differently from others of its
// network.
func (p Path) Single() bool { return p.single }

// besides reports whether two clients are in one network, and rules may treat one of them
// differently.
func (p *Path) besides(o *Path) bool {
	return p.single != o.single && p.network == o.network && p.Dial == o.Dial && !p.self && !o.self
}

// addInside adds the path of other machines to published ports that they may reach only at the
// container's own address.
func (c *Copy) addInside(rows []Row) {
	for j := range c.asked {
		q := &c.asked[j]
		if q.server == nil || q.kind != Remote || !q.server.publishesAt(q.service) {
			continue
		}
		p, ok := c.path(*q)
		p.own = true
		i := indexOf(rows, func(r *Row) bool {
			return r.Proto == q.proto && r.Server.ID == q.server.ID &&
				r.Server.Port == q.at.Port() && r.concerns(q.at.Addr().Is6())
		})
		if ok && i >= 0 && p.Answers() && !slices.ContainsFunc(rows[i].Dials, func(o Path) bool {
			return o.Client == Remote && o.Answers() && !o.own
		}) {
			rows[i].Dials = append(rows[i].Dials, p)
		}
	}
}

// indexOf is like slices.IndexFunc, but copies no rows.
func indexOf(rows []Row, is func(*Row) bool) int {
	for i := range rows {
		if is(&rows[i]) {
			return i
		}
	}
	return -1
}

// suppose sets the paths that the sockets alone suggest.
func (f *Facts) suppose(rows []Row) {
	for i := range rows {
		r := &rows[i]
		r.Paths = map[Client]Path{}
		for _, six := range []bool{false, true} {
			if r.concerns(six) {
				f.supposeFrom(r, six)
			}
		}
	}
}

func (f *Facts) supposeFrom(r *Row, six bool) {
	own, card := f.address(six)
	bridge := f.neighbour(r, six)
	loop, first := loopback(six)
	for _, x := range []struct {
		kind Client
		to   netip.Addr
		from place
		ok   bool
	}{{first, loop, place{kind: OwnAddr}, f.HasLoopback(loop)}, {OwnAddr, own, place{kind: OwnAddr}, true},
		{Neighbour, own, place{kind: Neighbour, bridge: bridge}, bridge != ""},
		{Remote, own, place{kind: Remote}, card != ""}} {
		if !x.ok || !x.to.IsValid() {
			continue
		}
		x.from.client.Bridge = x.from.bridge
		if x.kind == Remote {
			x.from.client.Card = card
		}
		to := netip.AddrPortFrom(x.to, r.Port)
		o := outcome{f: f, q: asked{service: service{r.Proto, to}, place: x.from, kind: x.kind},
			out: Path{Client: x.kind, Dial: to.String(), Hops: []Hop{}}}
		o.doubt(Reason{Code: Untried})
		l, ok := f.listens(r.Proto, to)
		switch {
		case ok && l.Addr.Addr() != r.addr:
			continue // another row's
		case ok:
			o.arrive()
			o.out.server = f.serverOf(l)
			if px, ok := f.proxyOf(l); ok && !px.Rootless && (x.kind == OwnAddr ||
				x.kind == Remote) && px.Container.Addr().Is6() == six {
				o.end(ByNAT, Reason{}) // Docker's rules do that
				o.hop("DNAT", "to "+px.Container.String())
				o.out.target = px.Container
			} else {
				o.here(l)
			}
		case r.Holder.Kind == "rules":
			o.end(ByNAT, Reason{})
		default:
			o.end(Nothing, Reason{Code: NoSocket, At: to.String()})
		}
		r.add(o.out)
	}
}
