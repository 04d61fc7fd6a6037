package observe

import (
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
)

// mostPaces bounds the spells whose pace is compared with that of the rest after it.
const mostPaces = 300

// sends has the payload bytes that a server had sent over each connection, by socket.
type sends struct {
	at   time.Time
	sent map[uint32]uint64
}

// sends reads what the server has sent; nil: over UDP, of which the kernel does not count it.
func (s *serving) sends() (*sends, error) {
	if s.udp {
		return nil, nil
	}
	out := &sends{at: time.Now(), sent: map[uint32]uint64{}}
	err := s.spaces[s.at.space].Visit(func() error {
		all, err := sock.All()
		for _, c := range all {
			if c.LocalPort == s.at.to.Port() {
				out.sent[c.Inode] = c.Sent
			}
		}
		return err
	})
	return out, err
}

// pace returns the bytes a second that the server sent since an earlier reading, over the
// connections of both; 0: unknown, because others opened or closed.
func (s *sends) pace(since *sends) float64 {
	if s == nil || since == nil {
		return 0
	}
	sum, both := uint64(0), 0
	for inode, n := range s.sent {
		if before, ok := since.sent[inode]; ok && n >= before {
			sum += n - before
			both++
		}
	}
	const most = 0.1 // of the connections
	if all := max(len(s.sent), len(since.sent)); float64(both) < (1-most)*float64(all) {
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
