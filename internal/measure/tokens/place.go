package tokens

import (
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
)

// Place is a server's or relay's port in a namespace. Namespaces have the caller's numbers.
type Place struct {
	Space int
	Port  uint16
	// Addr tells servers apart that have the same port at different addresses. It is zero if there is
	// only one, and for the ports that clients dial.
	Addr netip.Addr
}

// Takes reports whether what comes to an address at a place's port is its server's. Nil: all is.
type Takes func(netip.Addr) bool

// server is a place whose connections or datagrams are followed.
type server struct {
	Place
	takes Takes
}

// Serve makes the log follow what a server or relay receives at a place.
func (l *Log) Serve(at Place, takes Takes) {
	l.Dialled(at.Port)
	port := portIn{at.Space, at.Port}
	for _, s := range l.servers[port] {
		if s.Place == at {
			return
		}
	}
	l.servers[port] = append(l.servers[port], server{at, takes})
}

// serverAt returns the place that receives what comes to an address in a namespace.
func (l *Log) serverAt(space int, to netip.AddrPort) (at Place, ok bool) {
	for _, s := range l.servers[portIn{space, to.Port()}] {
		if s.takes == nil || s.takes(to.Addr()) {
			return s.Place, true
		}
	}
	return Place{}, false
}

// Dialled makes the log, if it joins connections, take the writes and reads of the sockets of clients
// that dial some ports, which packet filters may redirect to a place.
func (l *Log) Dialled(ports ...uint16) {
	for _, p := range ports {
		l.ports[p] = true
	}
}

// Dial makes the log follow what comes from a port to clients in a namespace.
func (l *Log) Dial(space int, port uint16) { l.clients[portIn{space, port}] = true }

// dials reports whether what clients in a namespace send to an address is followed.
func (l *Log) dials(space int, to netip.AddrPort) bool {
	return l.clients[portIn{space, to.Port()}]
}

// pair has the addresses of a socket and of its peer.
type pair struct{ local, remote netip.AddrPort }

func pairOf(e *writes.Event) pair {
	return pair{netip.AddrPortFrom(e.LocalAddr, e.Local), netip.AddrPortFrom(e.RemoteAddr, e.Remote)}
}

// ports are those of a socket and of its peer, in a namespace.
type ports struct {
	space         int
	local, remote uint16
}

func (p pair) ports(space int) ports { return ports{space, p.local.Port(), p.remote.Port()} }

// sockets has the writes to sockets whose connections are not yet known.
type sockets map[ports]map[pair][]writes.Event

func (w sockets) add(space int, e writes.Event) {
	p := pairOf(&e)
	at := p.ports(space)
	if w[at] == nil {
		w[at] = map[pair][]writes.Event{}
	}
	w[at][p] = append(w[at][p], e)
}

// take returns the writes to the socket of a connection, and forgets them. If a packet filter
// changed addresses, the socket has others than the packets: then it is one whose addresses no
// connection is known to have.
func (w sockets) take(space int, p pair, known func(pair) bool) (out []writes.Event) {
	if out := w.own(space, p); out != nil {
		return out
	}
	at := p.ports(space)
	for of, list := range w[at] {
		if !known(of) {
			out = append(out, list...)
			delete(w[at], of)
		}
	}
	return out
}

// own returns the writes to a socket with these addresses, and forgets them.
func (w sockets) own(space int, p pair) []writes.Event {
	if len(w) == 0 {
		return nil
	}
	at := p.ports(space)
	out := w[at][p]
	delete(w[at], p)
	return out
}

// trim forgets the writes to sockets whose packets would have been read by now: the events of
// writes are read at once, and packets once their block is full, or old.
func (w sockets) trim() {
	const unread = int64(time.Second)
	last := int64(0)
	for _, all := range w {
		last = max(last, latest(all))
	}
	for at, all := range w {
		if keepSince(all, last-unread); len(all) == 0 {
			delete(w, at)
		}
	}
}
