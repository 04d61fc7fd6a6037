package lab

import (
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
)

type seat struct {
	name   string
	end    string // "server", "client" or, from the second on, "server2"
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

func (s *site) serverSeats() []seat {
	n, _ := s.path.Spec.Count()
	out := make([]seat, n)
	for i := range out {
		out[i] = seatOf("server", i, n, 0, "")
	}
	return out
}

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

func ports(boxes []*container) []string {
	out := make([]string, len(boxes))
	for i, c := range boxes {
		out[i] = c.port
	}
	return out
}
