package sample

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Wire describes the link between two machines.
type Wire struct {
	Rate  uint64  `json:"rate_bit_per_s,omitempty"` // each way; 0: unlimited
	MTU   int     `json:"mtu,omitempty"`            // 0: 1500
	Delay float64 `json:"delay_s,omitempty"`        // each way
}

// String returns the wire as `--wire` takes it, or "" for the zero value.
func (w Wire) String() string {
	var parts []string
	if w.Rate > 0 {
		parts = append(parts, "rate="+units.FormatRate(float64(w.Rate)))
	}
	if w.MTU > 0 {
		parts = append(parts, fmt.Sprintf("mtu=%d", w.MTU))
	}
	if w.Delay > 0 {
		parts = append(parts, "delay="+units.FormatTime(w.OneWay()))
	}
	return strings.Join(parts, ",")
}

// OneWay returns the delay, to the nanosecond.
func (w Wire) OneWay() time.Duration {
	return time.Duration(math.Round(w.Delay * float64(time.Second)))
}

// RoundTrip returns what the delay adds to a round trip, in seconds.
func (w Wire) RoundTrip() float64 { return 2 * w.Delay }
