package lab

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/path"
)

// seat is what tells one end's container from the others of its path.
type seat struct {
	name   string // of the container
	end    string // "server", "client" or, from the second on, "server2"
	number int    // of its address among the containers': servers first
}

// veth is the name of its pair's end outside.
func (at seat) veth() string { return "veth-" + at.end }

// seatOf is the i-th seat of so many, called so.
func seatOf(end string, i, of, before int, where string) seat {
	at := seat{name: end + " container" + where, end: end, number: before + i}
	if of > 1 {
		at.name = fmt.Sprintf("%s container %d%s", end, i+1, where)
	}
	if i > 0 {
		at.end += strconv.Itoa(i + 1)
	}
	return at
}

// serverSeats are the seats of all servers' containers.
func (s *site) serverSeats() []seat {
	n, _ := s.path.Spec.Count()
	out := make([]seat, n)
	for i := range out {
		out[i] = seatOf("server", i, n, 0, "")
	}
	return out
}

// clientSeats are the seats of all clients' containers on a machine.
func (s *site) clientSeats(on *machine) []seat {
	n, m := s.path.Spec.Count()
	where := ""
	if on == s.b {
		where = " on " + s.b.name
	}
	out := make([]seat, m)
	for i := range out {
		out[i] = seatOf("client", i, m, n, where)
	}
	return out
}

// addServers makes the servers' containers; clients dial them there.
func (s *site) addServers(attach func(seat) (*container, error)) error {
	for _, at := range s.serverSeats() {
		c, err := attach(at)
		if err != nil {
			return err
		}
		s.servers = append(s.servers, c)
		s.listen(in(c), serverPort, netip.AddrPortFrom(c.addr.Addr(), serverPort))
	}
	return nil
}

// listen places the next server, which listens on a port there and is dialled
// so.
func (s *site) listen(place path.Place, port uint16, dial netip.AddrPort) {
	s.path.Servers = append(s.path.Servers, path.Server{Place: place, Listen: netip.AddrPortFrom(anyAddr, port)})
	s.dial = append(s.dial, dial)
}

// addClients makes the clients' containers on a machine, and places the
// clients in them.
func (s *site) addClients(on *machine, attach func(seat) (*container, error)) error {
	for _, at := range s.clientSeats(on) {
		c, err := attach(at)
		if err != nil {
			return err
		}
		s.clients = append(s.clients, c)
		s.placeClient(in(c))
	}
	return nil
}

// placeClient places the next client.
func (s *site) placeClient(place path.Place) {
	n, _ := s.path.Spec.Count()
	s.path.Clients = append(s.path.Clients, path.Client{Place: place, Server: len(s.path.Clients) % n})
}

// placeClients places all clients in one place.
func (s *site) placeClients(place path.Place) {
	_, m := s.path.Spec.Count()
	for range m {
		s.placeClient(place)
	}
}

// connect tells the clients whom to dial.
func (s *site) connect() {
	for i, c := range s.path.Clients {
		s.path.Clients[i].Dial = s.dial[c.Server]
	}
}

// eachServer is a hop for each server, which its clients' bytes cross.
func (s *site) eachServer(hop func(i int) path.Hop) []path.Hop {
	var out []path.Hop
	n, _ := s.path.Spec.Count()
	for i := range n {
		h := hop(i)
		h.Clients = s.path.Spec.TalkTo(i)
		out = append(out, h)
	}
	return out
}

// serverHops are the servers' own devices.
func (s *site) serverHops() []path.Hop {
	return s.eachServer(func(i int) path.Hop { return s.hop(s.servers[i], true) })
}

// clientHops are the clients' own devices.
func (s *site) clientHops() []path.Hop {
	var out []path.Hop
	for i, c := range s.clients {
		h := s.hop(c, false)
		h.Clients = s.path.Spec.Alone(i)
		out = append(out, h)
	}
	return out
}

// ports are the outer ends of containers' pairs.
func ports(boxes []*container) []string {
	out := make([]string, len(boxes))
	for i, c := range boxes {
		out[i] = c.port
	}
	return out
}
