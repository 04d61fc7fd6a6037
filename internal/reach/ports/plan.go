package ports

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

func (c *Copy) plan() {
	type key struct {
		proto string
		port  uint16
	}
	services := map[key][]Row{}
	var order []key
	for _, r := range c.f.rows() {
		k := key{r.Proto, r.Port}
		if c.port != 0 && (r.Port != c.port || !c.f.about(r.Proto)) {
			continue
		}
		if services[k] == nil {
			order = append(order, k)
		}
		services[k] = append(services[k], r)
	}
	places, single := map[bool][]place{}, c.single()
	for _, six := range []bool{false, true} {
		places[six] = slices.Concat(c.f.places(six), c.beside(six), c.unbridged(six), single[six])
	}
	c.planBridges()
	c.planUnmasqueraded()
	for _, k := range order {
		rows := services[k]
		for _, six := range []bool{false, true} {
			if slices.ContainsFunc(rows, func(r Row) bool { return r.concerns(six) }) {
				c.planService(k.proto, k.port, rows, six, places[six])
			}
		}
	}
	c.planInside(places)
}

func (c *Copy) planService(proto string, port uint16, rows []Row, six bool, places []place) {
	home, named := c.homeAndAddresses(rows, six)
	primary, _ := c.f.address(six)
	first, hosts := map[Client]bool{}, c.f.hosting()
	for _, p := range places {
		if len(p.addrs) == 0 && p.nets != nil {
			continue
		}
		add := func(tier int, kind Client, a netip.Addr) {
			if a.IsValid() {
				c.ask(asked{service: service{proto, netip.AddrPortFrom(a, port)}, place: p,
					kind: kind, tier: tier})
			}
		}
		if p.kind == OwnAddr {
			loop, kind := loopback(six)
			if c.f.HasLoopback(loop) {
				add(column, kind, loop)
			}
			add(column, OwnAddr, primary)
			for _, a := range named {
				if a.IsLoopback() && a != loop {
					add(column, kind, a)
				} else {
					add(column, OwnAddr, a)
				}
			}
			for _, a := range p.addrs {
				if hosts(c.f.device(c.f.towards(a))) {
					add(gateway, OwnAddr, a)
				} else {
					add(address, OwnAddr, a)
				}
			}
			continue
		}
		near, far := address, network
		if p.kind == Neighbour {
			home = cmp.Or(home, p.bridge)
			near = gateway
			if p.bridge == home {
				near, far = address, address
			}
		}
		switch {
		case p.kind == Remote && c.f.Client.IsValid():
			add(column, p.kind, p.addrs[0])
		case p.kind == Remote && !first[Remote], p.kind == Neighbour && p.bridge == home:
			first[p.kind] = true
			add(column, p.kind, primary)
		}
		for _, a := range named {
			if !a.IsLoopback() {
				add(min(near, far), p.kind, a)
			}
		}
		for _, a := range p.addrs {
			add(near, p.kind, a)
		}
		add(far, p.kind, primary)
		if p.kind == Neighbour {
			for _, a := range c.f.elsewhere(hosts, six, home) {
				add(gateway, p.kind, a)
			}
		}
	}
}

// elsewhere returns the addresses of the machine that containers dial besides the primary one and
// those of their own bridge: of cards, and of the server's bridge.
func (f *Facts) elsewhere(hosts func(Device) bool, six bool, home string) (out []netip.Addr) {
	for _, d := range f.Devices {
		if d.Name == home || !hosts(d) {
			out = append(out, d.own(six)...)
		}
	}
	return out
}

// planThemselves plans connections of the containers that answered others, to the same addresses: a
// container's own published port may lead nowhere for itself alone.
func (c *Copy) planThemselves() {
	type dial struct {
		service
		space int
	}
	planned := map[dial]bool{}
	made := map[dial]int{} // indexes of the connections from containers that rules single out
	for i, q := range c.asked {
		if q.self {
			planned[dial{q.service, q.client.Space}] = true
		} else if q.single {
			made[dial{q.service, q.client.Space}] = i
		}
	}
	for _, q := range c.asked {
		if q.server != nil || q.bridge != "" || q.at.Addr().IsLoopback() ||
			len(q.answer.Outcomes) == 0 {
			continue
		}
		s, ok := c.stand(q.answer.Outcomes[0].Socket)
		if !ok || s.container == nil {
			continue
		}
		space := c.Sockets[q.answer.Outcomes[0].Socket].Space
		if d := (dial{q.service, space}); !planned[d] && s.container.has(q.at.Addr().Is6()) {
			planned[d] = true
			if i, ok := made[d]; ok {
				c.asked[i].self = true
				continue
			}
			p := c.existing(space, s.container)
			p.self = true
			c.asked = append(c.asked, asked{service: q.service, place: p, kind: Neighbour,
				tier: address})
		}
	}
}

// homeAndAddresses returns the bridge of the first server in a container, and the rows' addresses.
func (c *Copy) homeAndAddresses(rows []Row, six bool) (home string, addrs []netip.Addr) {
	for _, r := range rows {
		if x, ok := c.f.homeOf(r.Server); ok && home == "" {
			home = c.f.bridgeOf(x)
		}
		if r.concerns(six) && r.Family != "both" && !r.addr.IsUnspecified() {
			addrs = once(addrs, r.addr.Unmap())
		}
	}
	return home, addrs
}

// planInside plans connections to the containers' own addresses: to published ports only from other
// machines.
func (c *Copy) planInside(places map[bool][]place) {
	for i := range c.f.Containers {
		x := &c.f.Containers[i]
		for _, l := range x.insides(0) {
			to, published := l.at, x.publishesAt(l.service) && l.at.Port() != c.port &&
				!c.f.Everything
			if c.port != 0 && to.Port() != c.port && !slices.ContainsFunc(x.Published,
				func(p Published) bool {
					return p.Proto == l.proto && p.Port == to.Port() && p.Host.Port() == c.port
				}) {
				continue
			}
			c.planItself(x, l)
			home := cmp.Or(c.f.bridgeAt(*x, to.Addr()), c.f.unbridged(*x))
			first := map[Client]bool{}
			for _, p := range places[to.Addr().Is6()] {
				kind := p.kind
				if kind == Neighbour && p.bridge != home {
					kind = Foreign
				}
				if published && kind != Remote || p.router || p.container == x ||
					len(p.addrs) == 0 && p.nets != nil && !p.near(to.Addr()) {
					continue
				}
				tier := network
				if !first[kind] {
					tier = column
				}
				first[kind] = true
				c.ask(asked{service: l.service, place: p, kind: kind, server: x, tier: tier})
			}
		}
	}
}

// planItself plans the connection of a container to its own loopback address, in a report on that
// port.
func (c *Copy) planItself(x *Container, l insider) {
	space := slices.IndexFunc(c.Machine.Spaces, func(s replica.Space) bool { return s.ID == x.Space })
	if c.port == 0 || !l.loopback.IsValid() || space < 0 {
		return
	}
	c.ask(asked{service: service{l.proto, l.loopback}, place: c.existing(space, x), kind: Itself,
		server: x, tier: column})
}

func (c *Copy) ask(q asked) {
	if !slices.ContainsFunc(c.asked[c.since(q):], func(o asked) bool {
		return o.service == q.service && o.client == q.client
	}) {
		c.asked = append(c.asked, q)
	}
}

// since returns the index from which on all connections in c.asked are to the same port as q.
func (c *Copy) since(q asked) int {
	i := len(c.asked)
	for i > 0 && c.asked[i-1].proto == q.proto && c.asked[i-1].at.Port() == q.at.Port() {
		i--
	}
	return i
}
