package lab

import (
	"net/netip"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

type seat struct {
	name   string
	end    string // "server" or "client"; from the second one on with a number, such as "server2"
	number int    // servers come first
}

func (at seat) veth() string { return "veth-" + at.end }

func seatOf(end string, i, of, before int, where string) seat {
	at := seat{name: recipe.Label(end, i, of) + where, end: end, number: before + i}
	if i > 0 {
		at.end += strconv.Itoa(i + 1)
	}
	return at
}

// serverSeats returns the seats of servers in containers.
func (s *site) serverSeats() []seat {
	if s.path.Spec.To.Outside() {
		return nil
	}
	n, _ := s.path.Spec.Count()
	out := make([]seat, n)
	for i := range out {
		out[i] = seatOf("server", i, n, 0, "")
	}
	return out
}

func (s *site) clientSeats(on *hostMachine) []seat {
	n := len(s.serverSeats())
	_, m := s.path.Spec.Count()
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

// serve places the servers as processes on a machine.
func (s *site) serve(place path.Place, dial netip.Addr) {
	n, _ := s.path.Spec.Count()
	for i := range n {
		port := uint16(serverPort + i)
		s.Listen(place, port, netip.AddrPortFrom(dial, port))
	}
}

func (s *site) serveOutside() { s.serve(on(s.b), s.b.Addr()) }

func (s *site) addServers(attach func(seat) (*container, error)) error {
	if s.path.Spec.To.Outside() {
		s.serveOutside()
	}
	for _, at := range s.serverSeats() {
		c, err := attach(at)
		if err != nil {
			return err
		}
		s.AddServer(c)
	}
	return nil
}

func (s *site) addClients(on *hostMachine, attach func(seat) (*container, error)) error {
	for _, at := range s.clientSeats(on) {
		c, err := attach(at)
		if err != nil {
			return err
		}
		s.AddClient(c)
	}
	return nil
}

// placeClients places the clients as processes on their machine, or else calls contained, which
// adds their containers.
func (s *site) placeClients(contained func() error) error {
	switch s.path.Spec.From {
	case mode.FromHost:
		s.PlaceClients(on(s.a))
	case mode.FromRemote:
		s.PlaceClients(on(s.b))
	default:
		return contained()
	}
	return nil
}

func ports(boxes []*container) []string {
	out := make([]string, len(boxes))
	for i, c := range boxes {
		out[i] = c.port
	}
	return out
}
