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
}

// sends reads what the server has sent; nil: unknown, because the kernel does not count it, as over
// UDP, or because the connections are too many.
func (s *serving) sends() *sends {
	if s.udp || s.crowded {
		return nil
	}
	out := &sends{at: time.Now(), sent: map[netip.AddrPort]uint64{}}
	err := s.ofServer(func(x sock.Socket) { out.sent[x.Remote] = x.Sent })
	s.crowded = len(out.sent) > mostClients
	if err != nil || s.crowded {
		return nil
	}
	return out
}

// pace returns the bytes a second that the server sent since an earlier reading, over the
// connections of both; 0: unknown, because others opened or closed.
func (s *sends) pace(since *sends) float64 {
	if s == nil || since == nil {
		return 0
	}
	sum, both := uint64(0), 0
	for client, n := range s.sent {
		if before, ok := since.sent[client]; ok && n >= before {
			sum += n - before
			both++
		}
	}
	const least = 0.98 // of the connections: less than what counts as slowed may be missing
	if all := max(len(s.sent), len(since.sent)); float64(both) < least*float64(all) {
		return 0
	}
	return float64(sum) / s.at.Sub(since.at).Seconds()
}

// compare notes the pace of a spell, relative to that of the rest after it.
func (s *serving) compare(spell, rest float64) {
	if spell > 0 && rest > 0 && len(s.served.Pace) < mostPaces {
		s.served.Pace = append(s.served.Pace, spell/rest)
	}
}
