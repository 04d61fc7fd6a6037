package observe

import (
	"net/netip"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
)

// mostPaces bounds the spells whose pace is compared with that of the rest after it.
const mostPaces = 300

// mostClients bounds the connections that are read. Those of more take a large part of a spell.
const mostClients = 2000

// sends has the payload bytes that a server had sent over each connection, by its client.
type sends struct {
	at   time.Time
	sent map[netip.AddrPort]uint64
	all  []sock.Socket
}

func (s *sends) add(x sock.Socket) { s.sent[x.Remote], s.all = x.Sent, append(s.all, x) }

// sends reads what the server has sent; nil: unknown, because the kernel does not count it, as over
// UDP, or because the connections are too many.
func (s *serving) sends() *sends {
	if s.udp || s.crowded {
		return nil
	}
	out := &sends{at: time.Now(), sent: map[netip.AddrPort]uint64{}}
	err := s.ofServer(out.add)
	s.crowded = len(out.all) > mostClients
	if err != nil || s.crowded {
		return nil
	}
	return out
}

// again reads the same connections once more. It takes little time, for it does not look through all:
// what is followed meanwhile is hardly slowed.
func (s *serving) again(of *sends) *sends {
	if of == nil {
		return nil
	}
	out := &sends{at: time.Now(), sent: map[netip.AddrPort]uint64{}}
	err := s.spaces[s.at.space].Visit(func() error {
		all, err := sock.Again(of.all)
		for _, x := range all {
			out.add(x)
		}
		return err
	})
	if err != nil {
		return nil
	}
	return out
}

// since returns the bytes that the server sent since an earlier reading over the connections of both.
// ok is false if others opened or closed.
func (s *sends) since(before *sends) (sum uint64, ok bool) {
	if s == nil || before == nil {
		return 0, false
	}
	both := 0
	for client, n := range s.sent {
		if before, ok := before.sent[client]; ok && n >= before {
			sum += n - before
			both++
		}
	}
	const least = 0.98 // of the connections: less than what counts as slowed may be missing
	return sum, float64(both) >= least*float64(max(len(s.sent), len(before.sent)))
}

// pace returns the bytes a second that the server sent since an earlier reading; 0: unknown.
func (s *sends) pace(before *sends) float64 {
	sum, ok := s.since(before)
	if !ok {
		return 0
	}
	return float64(sum) / s.at.Sub(before.at).Seconds()
}

// compare notes the pace of the last spell, relative to that of the rest after it, which began with
// rests. Both are of the connections before the spell, so it is not known if others opened until now.
func (s *serving) compare(rests *sends) {
	spell, rest := s.ended.pace(s.began), s.last.pace(rests)
	if _, ok := s.last.since(s.began); ok && spell > 0 && rest > 0 && len(s.served.Pace) < mostPaces {
		s.served.Pace = append(s.served.Pace, spell/rest)
	}
}
