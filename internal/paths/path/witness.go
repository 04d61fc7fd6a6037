package path

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Expect is what a hop must count when the load crosses it.
type Expect int

const (
	// Carries: every payload byte, in its direction.
	Carries Expect = iota
	// CarriesBoth: every payload byte of both directions, as forward, like a loopback device.
	CarriesBoth
	// Matches: the first packet of each connection, as a rule does.
	Matches
	// Untouched: nothing of the load.
	Untouched
	// Relays: as Carries, by a process's sockets. If they have ended with the load, Hits is the
	// number of relayed connections.
	Relays
	// Delivers: the datagrams of both directions, as forward packets, by the sockets that received
	// them. Their bytes are not counted.
	Delivers
)

// Hop is a part of the path with readable counters.
type Hop struct {
	Kind   mode.HopKind
	Name   string // device, rule or process
	Where  string // "machine A", "container"
	Expect Expect
	// Others means that other traffic usually crosses the device, so it may have counted more than
	// the load.
	Others bool
	// BehindTap means that the hop is between a tap device and the container, so a TCP in user
	// space sends and acknowledges the packets there.
	BehindTap bool
	// Clients lists the clients whose bytes cross the hop, by their indexes in Path.Clients; nil:
	// all.
	Clients []int
	// Shared is equal for hops of several paths that are the same device or rule. It must be
	// comparable. nil: the hop belongs to this path alone.
	Shared any
	// Counts names the device's counters that Read returns, if other hops may read them as well;
	// zero: the hop's name identifies them.
	Counts [2]Counter
	// Crossing lists the clients and directions that the hop counts, if several cells share it;
	// nil: both directions of Clients.
	Crossing []Crossing
	// Read reads the counters. That costs the load nothing, because the kernel counts anyway.
	Read func() (sample.Counters, error)
}

func (h Hop) toUserSpace() bool { return h.BehindTap || h.Kind == mode.HopTap }

// MarkBehindTap sets BehindTap of the hops between the tap devices and the containers.
func (p *Path) MarkBehindTap() {
	tap := func(h Hop) bool { return h.Kind == mode.HopTap }
	for i := range p.Hops {
		before, after := p.Hops[:i], p.Hops[i+1:]
		if p.Spec.To.Outside() {
			before = after
		}
		p.Hops[i].BehindTap = slices.ContainsFunc(before, tap)
	}
}

// Counter selects one of a device's counters: sent or received.
type Counter struct {
	Device string
	Sent   bool
}

// Crossing has the directions of a client's bytes that a hop's forward and backward counters count.
type Crossing struct {
	Client int
	Takes  [2]Directions
}

// Directions is a set of directions: to the server, and back.
type Directions struct{ Forward, Backward bool }

// or returns the union of both sets.
func (w Directions) or(o Directions) Directions {
	return Directions{w.Forward || o.Forward, w.Backward || o.Backward}
}

// carry reports whether the client's bytes cross the hop.
func (h Hop) carry(client int) bool {
	return h.Clients == nil || slices.Contains(h.Clients, client)
}

// ReadAll reads the counters of hops. It returns an error if it cannot read one of them, because
// then the path cannot be proved.
func ReadAll(hops []Hop) ([]sample.Counters, error) {
	out := make([]sample.Counters, len(hops))
	var errs []error
	for i, h := range hops {
		c, err := h.Read()
		if err != nil {
			errs = append(errs, fmt.Errorf("read hop %s %s: %w", h.Kind, h.Name, err))
		}
		out[i] = c
	}
	return out, errors.Join(errs...)
}

// Witness compares the hops' counters with what each client moved. The evidence names the hops that
// contradict the path.
func Witness(hops []Hop, before, after []sample.Counters, clients ...Moved) sample.Witness {
	var against []string
	for i, h := range hops {
		var m Moved
		for c, moved := range clients {
			if h.carry(c) {
				m = m.plus(moved)
			}
		}
		again := h.relaysResent(hops, before, after, len(clients))
		m.Resent += again
		if s := h.judge(after[i].Sub(before[i]), m, h.flows(m, clients, again)); s != "" {
			against = append(against, fmt.Sprintf("%s %s (%s): %s", h.Kind, h.Name, h.Where, s))
		}
	}
	if !slices.ContainsFunc(clients, func(m Moved) bool { return m.Forward+m.Backward > 0 }) {
		against = append(against, "the load moved no byte")
	}
	return sample.Witness{OK: len(against) == 0, Evidence: strings.Join(against, "; ")}
}

// relaysResent returns the number of bytes that relays of the hop's clients resent. The ends of the
// load do not know them.
func (h Hop) relaysResent(hops []Hop, before, after []sample.Counters, clients int) (bytes int64) {
	for i, relay := range hops {
		if relay.Expect != Relays {
			continue
		}
		for c := range clients {
			if h.carry(c) && relay.carry(c) {
				bytes += int64(after[i].Sub(before[i]).ResentBytes)
				break
			}
		}
	}
	return bytes
}

func (h Hop) flows(m Moved, clients []Moved, again int64) (out [2]flow) {
	m.eachAcked = h.toUserSpace()
	if h.Crossing == nil {
		if h.Expect == CarriesBoth || h.Expect == Delivers {
			return [2]flow{m.forward().plus(m.backward())}
		}
		return [2]flow{m.forward(), m.backward()}
	}
	for _, x := range h.Crossing {
		moved := clients[x.Client]
		moved.Resent += again
		moved.eachAcked = h.toUserSpace()
		for i, d := range x.Takes {
			if d.Forward {
				out[i] = out[i].plus(moved.forward())
			}
			if d.Backward {
				out[i] = out[i].plus(moved.backward())
			}
		}
	}
	return out
}

func (h Hop) judge(c sample.Counters, m Moved, flows [2]flow) string {
	switch h.Expect {
	case CarriesBoth:
		return h.carried("both ways", c.ForwardBytes, c.ForwardPackets, flows[0])
	case Delivers:
		return delivered(c.ForwardPackets, flows[0])
	case Matches:
		return matched("hit", c.Hits, m)
	case Relays:
		if m.Brief {
			return matched("relayed connections", c.Hits, m)
		}
	case Untouched:
		if m.Brief { // the number of connections permits no further traffic
			return untouched(c, 0)
		}
		return untouched(c, max(0, m.Connections-1))
	}
	return h.carries(c, flows)
}

func (h Hop) carries(c sample.Counters, flows [2]flow) string {
	if s := h.carried("to the server", c.ForwardBytes, c.ForwardPackets, flows[0]); s != "" {
		return s
	}
	if s := h.carried("to the client", c.BackwardBytes, c.BackwardPackets, flows[1]); s != "" {
		return s
	}
	// Acknowledgements come back even if all payload goes one way.
	if c.ForwardPackets > 0 && c.BackwardPackets == 0 ||
		c.ForwardPackets == 0 && c.BackwardPackets > 0 {
		return fmt.Sprintf(
			"counted %s to the server and %d back: one direction took another path",
			units.Plural(int(c.ForwardPackets), "packet"), c.BackwardPackets)
	}
	return ""
}

// carried judges the counts of one direction, and returns "" if they fit. Of a hop without packet
// counts, such as a proxy's sockets, it judges only the bytes.
func (h Hop) carried(way string, bytes, packets uint64, f flow) string {
	slack := slackShare
	if h.toUserSpace() {
		slack = tapShare
	}
	most := f.packets(slack)
	switch {
	case bytes < uint64(f.arrived):
		return fmt.Sprintf("counted %d bytes %s, the load moved %d", bytes, way, f.arrived)
	case packets > 0 && packets < uint64(f.trips):
		return fmt.Sprintf("counted %d packets %s, the load made %d trips", packets, way, f.trips)
	case h.Others:
		return ""
	case float64(packets) > most:
		return fmt.Sprintf(
			"counted %d packets %s, the load can have sent %.0f: other traffic shares the path",
			packets, way, most)
	case float64(bytes) > f.bytes(packets, slack):
		return fmt.Sprintf(
			"counted %d bytes in %d packets %s, the load can have sent %.0f: other traffic shares the path",
			bytes, packets, way, f.bytes(packets, slack))
	}
	return ""
}

func delivered(packets uint64, f flow) string {
	switch most := (f.tries+f.bare)*(1+slackShare) + quietPackets; {
	case packets < uint64(f.messages):
		return fmt.Sprintf("received %d datagrams, the load moved %d", packets, f.messages)
	case float64(packets) > most:
		return fmt.Sprintf(
			"received %d datagrams, the load can have sent %.0f: other traffic shares the path",
			packets, most)
	}
	return ""
}

// matched judges a rule's hits. It permits a few more hits than connections, because a SYN that is
// lost behind the hop is sent and counted again.
func matched(what string, hits uint64, m Moved) string {
	most := m.Connections + extraProbes + probesEach*m.Failed
	if m.Brief {
		most += int(slackShare * float64(m.Connections))
	}
	switch {
	case hits < uint64(m.Connections):
		return fmt.Sprintf("%s %s by %s", what, units.Plural(int(hits), "time"),
			units.Plural(m.Connections, "connection"))
	case hits > uint64(most):
		return fmt.Sprintf("%s %s, the load opened only %s", what, units.Plural(int(hits), "time"),
			units.Plural(m.Connections, "connection"))
	}
	return ""
}

func untouched(c sample.Counters, more int) string {
	if c.Hits > 0 {
		return "hit " + units.Plural(int(c.Hits), "time") + ", the path must not use it"
	}
	bytes, packets := c.ForwardBytes+c.BackwardBytes, c.ForwardPackets+c.BackwardPackets
	if bytes > quietBytes+eachBytes*uint64(more) || packets > quietPackets+eachPacket*uint64(more) {
		return fmt.Sprintf("counted %d bytes in %d packets, the path must not use it", bytes,
			packets)
	}
	return ""
}
