package path

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// Expect says what a hop must count when the load crosses it.
type Expect int

const (
	// Carries: every payload byte in its direction.
	Carries Expect = iota
	// CarriesBoth: every payload byte of both directions, counted as forward
	// (a loopback device does not tell the directions apart).
	CarriesBoth
	// Matches: a rule that sees the first packet of each connection.
	Matches
	// Untouched: nothing of the load.
	Untouched
)

// Hop is one thing on the path whose counters can be read.
type Hop struct {
	Kind   mode.HopKind
	Name   string // device, rule or process
	Where  string // "machine A", "container"
	Expect Expect
	// Read reads the counters now. It costs the load nothing: the counters
	// are the kernel's own and run anyway.
	Read func() (sample.Counters, error)
}

// ReadAll reads the counters of hops. A hop that cannot be read is an error,
// because its path cannot be proved.
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

// Moved is what a load says that it moved in a whole visit, warm-up included.
type Moved struct {
	Forward     int64 // payload bytes, client to server, that arrived
	Backward    int64 // payload bytes, server to client, that arrived
	Connections int   // opened
}

// Bounds of the witness. Below, there is no slack: every payload byte that
// arrived must have been counted. Above, a hop also counts headers (at most
// maxHeader bytes a packet: Ethernet 14, IPv6 40, TCP 60), what was still
// under way or sent again, and the odd ARP packet.
const (
	maxHeader   = 114
	slackShare  = 0.02
	slackBytes  = 8 << 20 // the largest send queue that can be under way at the end
	quietBytes  = 4 << 10 // what an untouched device may count all the same: ARP, neighbour discovery
	quietShare  = 0.001   // and of a large load
	extraProbes = 2       // connections a rule may see beyond the load's own (SYN sent again)
)

// Witness compares what the hops counted with what the load moved, and says
// which hop contradicts the path.
func Witness(hops []Hop, before, after []sample.Counters, m Moved) sample.Witness {
	var against []string
	for i, h := range hops {
		if s := h.judge(after[i].Sub(before[i]), m); s != "" {
			against = append(against, fmt.Sprintf("%s %s (%s): %s", h.Kind, h.Name, h.Where, s))
		}
	}
	if m.Forward+m.Backward == 0 {
		against = append(against, "the load moved no byte")
	}
	return sample.Witness{OK: len(against) == 0, Evidence: strings.Join(against, "; ")}
}

// judge returns what contradicts the path, or "".
func (h Hop) judge(c sample.Counters, m Moved) string {
	switch h.Expect {
	case CarriesBoth:
		return carried("both ways", c.ForwardBytes, c.ForwardPackets, m.Forward+m.Backward)
	case Matches:
		return matched(c.Hits, m.Connections)
	case Untouched:
		return untouched(c, m)
	default:
		if s := carried("to the server", c.ForwardBytes, c.ForwardPackets, m.Forward); s != "" {
			return s
		}
		return carried("to the client", c.BackwardBytes, c.BackwardPackets, m.Backward)
	}
}

func carried(way string, bytes, packets uint64, payload int64) string {
	most := float64(payload)*(1+slackShare) + slackBytes + maxHeader*float64(packets)
	switch {
	case bytes < uint64(payload):
		return fmt.Sprintf("counted %d bytes %s, the load moved %d", bytes, way, payload)
	case float64(bytes) > most:
		return fmt.Sprintf("counted %d bytes in %d packets %s, far more than the load's %d: other traffic shares the path",
			bytes, packets, way, payload)
	}
	return ""
}

func matched(hits uint64, connections int) string {
	switch {
	case hits < uint64(connections):
		return fmt.Sprintf("hit %d times by %d connections", hits, connections)
	case hits > uint64(connections)+extraProbes:
		return fmt.Sprintf("hit %d times, the load opened only %d connections", hits, connections)
	}
	return ""
}

func untouched(c sample.Counters, m Moved) string {
	if c.Hits > 0 {
		return fmt.Sprintf("hit %d times, the path must not use it", c.Hits)
	}
	quiet := quietBytes + uint64(quietShare*float64(m.Forward+m.Backward))
	if n := c.ForwardBytes + c.BackwardBytes; n > quiet {
		return fmt.Sprintf("counted %d bytes, the path must not use it", n)
	}
	return ""
}
