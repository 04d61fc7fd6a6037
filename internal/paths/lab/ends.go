package lab

import (
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
)

// seat distinguishes one end's container from the others of its path.
type seat struct {
	name   string // of the container
	end    string // "server", "client" or, from the second on, "server2"
	number int    // of its address among the containers': servers come first
}

// veth returns the name of the outer end of its pair.
func (at seat) veth() string { return "veth-" + at.end }

// seatOf returns the i-th of the given number of seats.
func seatOf(end string, i, of, before int, where string) seat {
	at := seat{name: recipe.Label(end, i, of) + where, end: end, number: before + i}
	if i > 0 {
		at.end += strconv.Itoa(i + 1)
	}
	return at
}

// serverSeats returns the seats of all servers' containers.
func (s *site) serverSeats() []seat {
	n, _ := s.path.Spec.Count()
	out := make([]seat, n)
	for i := range out {
		out[i] = seatOf("server", i, n, 0, "")
	}
	return out
}

// clientSeats returns the seats of all clients' containers on a machine.
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

// addServers makes the servers' containers; clients dial their addresses.
func (s *site) addServers(attach func(seat) (*container, error)) error {
	for _, at := range s.serverSeats() {
		c, err := attach(at)
		if err != nil {
			return err
		}
		s.AddServer(c)
	}
	return nil
}

// addClients makes the clients' containers on a machine, and places the clients in them.
func (s *site) addClients(on *machine, attach func(seat) (*container, error)) error {
	for _, at := range s.clientSeats(on) {
		c, err := attach(at)
		if err != nil {
			return err
		}
		s.AddClient(c)
	}
	return nil
}

// ports returns the outer ends of containers' pairs.
func ports(boxes []*container) []string {
	out := make([]string, len(boxes))
	for i, c := range boxes {
		out[i] = c.port
	}
	return out
}
