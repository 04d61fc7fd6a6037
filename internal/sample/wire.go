package sample

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Wire is what the link between two machines was made to be like.
type Wire struct {
	Rate  uint64  `json:"rate_bit_per_s,omitempty"` // each way; 0: unlimited
	MTU   int     `json:"mtu,omitempty"`            // bytes; 0: 1500
	Delay float64 `json:"delay_s,omitempty"`        // each way
}

// rateUnits are tc's names of bit rates, in bit/s, the largest first.
var rateUnits = []struct {
	Name  string
	Scale float64
}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

// ParseRate reads a rate such as "500mbit", in bit/s, of which it says whether
// it is from least to most.
func ParseRate(s string, least, most float64) (rate float64, ok bool) {
	for _, u := range rateUnits {
		num, is := strings.CutSuffix(strings.ToLower(s), u.Name)
		if !is {
			continue
		}
		x, err := strconv.ParseFloat(num, 64)
		if x *= u.Scale; err != nil || !(x >= least && x <= most) {
			return 0, false
		}
		return math.Round(x), true
	}
	return 0, false
}

// String is the wire as `--wire` takes it; "" for the zero value.
func (w Wire) String() string {
	var parts []string
	if w.Rate > 0 {
		for _, u := range rateUnits {
			if x := float64(w.Rate) / u.Scale; x >= 1 {
				parts = append(parts, fmt.Sprintf("rate=%g%s", x, u.Name))
				break
			}
		}
	}
	if w.MTU > 0 {
		parts = append(parts, fmt.Sprintf("mtu=%d", w.MTU))
	}
	if w.Delay > 0 {
		parts = append(parts, "delay="+strings.ReplaceAll(w.OneWay().String(), "µ", "u"))
	}
	return strings.Join(parts, ",")
}

// OneWay is the delay as Go has it; it keeps every nanosecond that was asked
// for.
func (w Wire) OneWay() time.Duration {
	return time.Duration(math.Round(w.Delay * float64(time.Second)))
}

// RoundTrip is what the delay adds to a round trip, in seconds.
func (w Wire) RoundTrip() float64 { return 2 * w.Delay }
