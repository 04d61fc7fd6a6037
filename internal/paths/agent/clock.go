package agent

import (
	"math"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// On a busy machine most round trips are slow, but a single fast one bounds the offset. So after
// clockTrips, round trips go on for up to clockPatience until the offset is known within clockFine.
const (
	clockTrips    = 8
	clockFine     = time.Millisecond
	clockPatience = 250 * time.Millisecond
)

// now returns CLOCK_MONOTONIC in ns.
func now() int64 { return clock.Now() }

// bounds has the least and the greatest possible lead of another clock over this one, in ns.
type bounds struct {
	least, most int64
	known       bool
}

// narrow adds a round trip, which read the other clock between two readings of this one. The bounds
// are the intersection of all round trips' bounds (Marzullo).
func (b *bounds) narrow(before, other, after int64) {
	if !b.known {
		b.least, b.most, b.known = math.MinInt64, math.MaxInt64, true
	}
	b.least, b.most = max(b.least, other-after), min(b.most, other-before)
}

// compareClocks compares two clocks: now reads this one, ask reads the other one by a round trip.
func compareClocks(now func() int64, ask func() (int64, error)) (path.Offset, error) {
	var b bounds
	began := now()
	for i := 0; i < clockTrips ||
		b.offset().Unsure > clockFine && now()-began < int64(clockPatience); i++ {
		before := now()
		other, err := ask()
		if err != nil {
			return path.Offset{}, err
		}
		b.narrow(before, other, now())
	}
	return b.offset(), nil
}

func (b *bounds) offset() path.Offset {
	// Slewing a clock may reverse the bounds slightly.
	width := max(b.most-b.least, b.least-b.most)
	return path.Offset{Ahead: time.Duration(b.least + (b.most-b.least)/2),
		Unsure: time.Duration((width + 1) / 2)}
}
