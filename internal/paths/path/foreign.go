package path

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// WitnessForeign judges the load of a foreign program, which does not report its bytes. If one
// hop's counters prove an amount of payload, all hops must have counted that much, and each rule
// and relay must have seen a connection. Hops before a loss count resent packets twice, so the
// others may have counted a tenth less.
//
// arrived is the number of connections and datagrams that reached the server, or NaN if unknown. It
// shows that devices have not counted only neighbour discovery.
func WitnessForeign(hops []Hop, before, after []sample.Counters, arrived float64) sample.Witness {
	seen := make([]sample.Counters, len(hops))
	for i := range hops {
		seen[i] = after[i].Sub(before[i])
	}
	m := proven(hops, seen)
	m.Forward -= m.Forward / lostShare
	m.Backward -= m.Backward / lostShare
	var against []string
	for i, h := range hops {
		if s := h.judgeForeign(seen[i], m); s != "" {
			against = append(against, fmt.Sprintf("%s %s (%s): %s", h.Kind, h.Name, h.Where, s))
		}
	}
	if arrived == 0 {
		against = append(against, "the server: no connection was accepted and no datagram came")
	}
	return sample.Witness{OK: len(against) == 0, Evidence: strings.Join(against, "; ")}
}

const (
	lostShare = 10
	// Ethernet 14, IPv6 40, TCP 60
	maxHeader = 114
)

// proven returns the largest payload in each direction that a hop's counters prove. It ignores hops
// that count both directions as one, because they prove only the sum.
func proven(hops []Hop, seen []sample.Counters) (m Moved) {
	for i, h := range hops {
		if h.Expect == Carries {
			m.Forward = max(m.Forward, payload(seen[i].ForwardBytes, seen[i].ForwardPackets))
			m.Backward = max(m.Backward, payload(seen[i].BackwardBytes, seen[i].BackwardPackets))
		}
	}
	return m
}

func payload(bytes, packets uint64) int64 { return max(0, int64(bytes)-maxHeader*int64(packets)) }

func (h Hop) judgeForeign(c sample.Counters, m Moved) string {
	switch h.Expect {
	case Untouched:
		return untouched(c, 0)
	case Matches, Relays:
		if c.Hits == 0 {
			return "saw no connection"
		}
		return ""
	case Delivers:
		if c.ForwardPackets == 0 {
			return "received no datagram"
		}
		return ""
	case CarriesBoth:
		if c.ForwardPackets == 0 {
			return "saw no packet"
		}
		if c.ForwardBytes < uint64(m.Forward+m.Backward) {
			return fmt.Sprintf("counted %d bytes both ways, another hop %d", c.ForwardBytes,
				m.Forward+m.Backward)
		}
		return ""
	}
	if c.ForwardPackets == 0 || c.BackwardPackets == 0 {
		return fmt.Sprintf("saw %s to the server and %d back",
			units.Plural(int(c.ForwardPackets), "packet"), c.BackwardPackets)
	}
	if c.ForwardBytes < uint64(m.Forward) || c.BackwardBytes < uint64(m.Backward) {
		return fmt.Sprintf("counted %d bytes to the server and %d back, another hop %d and %d",
			c.ForwardBytes, c.BackwardBytes, m.Forward, m.Backward)
	}
	return ""
}
