package agent

import (
	"math"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

// clockTrips is how many round trips compare two clocks.
const clockTrips = 8

// now is CLOCK_MONOTONIC in ns.
func now() int64 { return clock.Now() }

// bounds is what is known of how far another clock is ahead, in ns.
type bounds struct {
	least, most int64
	known       bool
}

// narrow takes a round trip: the other clock was read between two readings of this
// one, so it is ahead by no more than if it had been read at the first of them, and
// by no less than if at the last. All trips hold at once (Marzullo's intersection,
// of clocks that do not drift meanwhile).
func (b *bounds) narrow(before, other, after int64) {
	if !b.known {
		b.least, b.most, b.known = math.MinInt64, math.MaxInt64, true
	}
	b.least, b.most = max(b.least, other-after), min(b.most, other-before)
}

func (b *bounds) offset() path.Offset {
	// A clock that was slewed meanwhile can turn the bounds around by a little.
	width := max(b.most-b.least, b.least-b.most)
	return path.Offset{Ahead: time.Duration(b.least + (b.most-b.least)/2), Unsure: time.Duration((width + 1) / 2)}
}
