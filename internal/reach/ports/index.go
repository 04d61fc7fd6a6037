package ports

import "net/netip"

// index finds facts without a search through all: some machines have thousands of sockets and
// proxies, and a report asks for each several times. Judge and NewCopy make it.
type index struct {
	sockets, proxies int // the lengths of the indexed lists
	// byPort has Facts.Listeners, and proxiesBy Facts.Proxies, by protocol and port, in order.
	byPort    map[service][]*Listener
	proxiesBy map[service][]*Proxy
	// publishedAt has the first container, and the index of its port, by protocol and address, and
	// publishedOn which ports containers publish.
	publishedAt map[service]publication
	publishedOn map[service]bool
	carried     map[int][]*Connection // by the PID of a process
}

// publication is a port of a container that runs.
type publication struct {
	container *Container
	port      Published
}

func (f *Facts) makeIndex() {
	x := &index{sockets: len(f.Listeners), proxies: len(f.Proxies),
		byPort: map[service][]*Listener{}, proxiesBy: map[service][]*Proxy{},
		publishedAt: map[service]publication{}, publishedOn: map[service]bool{},
		carried: map[int][]*Connection{}}
	for i := range f.Listeners {
		l := &f.Listeners[i]
		k := portOfService(service{l.Proto, l.Addr})
		x.byPort[k] = append(x.byPort[k], l)
	}
	for i := range f.Proxies {
		p := &f.Proxies[i]
		k := portOfService(service{p.Proto, p.Host})
		x.proxiesBy[k] = append(x.proxiesBy[k], p)
		x.carried[p.PID] = nil
	}
	for i := range f.Connections {
		c := &f.Connections[i]
		if of, ok := x.carried[c.PID]; ok {
			x.carried[c.PID] = append(of, c)
		}
	}
	for i := range f.Containers {
		c := &f.Containers[i]
		for _, p := range c.Published {
			at := service{p.Proto, p.Host}
			x.publishedOn[portOfService(at)] = true
			if _, ok := x.publishedAt[at]; !ok && c.PID != 0 {
				x.publishedAt[at] = publication{c, p}
			}
		}
	}
	f.index = x
}

// indexed returns the index of the facts as they are. Facts of which no report is made have a new
// one each time.
func (f *Facts) indexed() *index {
	if x := f.index; x != nil && x.sockets == len(f.Listeners) && x.proxies == len(f.Proxies) {
		return x
	}
	g := *f
	g.makeIndex()
	return g.index
}

// socketsOn returns the machine's sockets on a port, in order.
func (f *Facts) socketsOn(proto string, port uint16) []*Listener {
	return f.indexed().byPort[service{proto, netip.AddrPortFrom(netip.Addr{}, port)}]
}

// pointers returns pointers to the elements.
func pointers[T any](all []T) (out []*T) {
	for i := range all {
		out = append(out, &all[i])
	}
	return out
}

// best returns the first element of those with the highest score, or nil if no score is above 0.
func best[T any](all []*T, score func(*T) int) (out *T) {
	rank := 0
	for _, x := range all {
		if s := score(x); s > rank {
			out, rank = x, s
		}
	}
	return out
}
