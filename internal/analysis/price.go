package analysis

import (
	"fmt"
	"math"

	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// Price is what a part costs in one metric: the difference that it makes, or
// of throughput the ratio.
type Price struct {
	Unit    string        `json:"unit"` // the metric's, or "ratio"
	Median  float64       `json:"median"`
	Low     float64       `json:"low"`
	High    float64       `json:"high"`
	N       int           `json:"n"`       // rounds that both have
	Verdict stats.Verdict `json:"verdict"` // costs, gains, nothing, unclear
	// LimitedBy is "wire" if both fill it: then its rate hides what the part
	// costs in throughput.
	LimitedBy string `json:"limited_by,omitempty"`
}

// ratioUnit is the unit of a price that is a ratio.
const ratioUnit = "ratio"

// printed are the units in which people read prices.
var printed = map[string]struct {
	scale float64
	unit  string
}{"s": {1e6, "µs"}, "ms": {1, "ms"}, "s/B": {1e9, "s"}, ratioUnit: {1, ""}, coreUnit: {100, "%"}}

// Milliseconds is the price of a time, as String but in ms.
func (p Price) Milliseconds() string {
	const ms = 1e3
	p.Unit, p.Median, p.Low, p.High = "ms", ms*p.Median, ms*p.Low, ms*p.High
	return p.String()
}

// neutral is the value of a part that costs nothing.
func (p Price) neutral() float64 {
	if p.Unit == ratioUnit {
		return 1
	}
	return 0
}

// String is the price in µs, s a gigabyte or as a ratio: "+3.4 ±0.8" is the
// median with its interval; "≤ 1.2" is nothing measurable and no more than
// that; "?" is unclear.
func (p Price) String() string {
	switch {
	case p.LimitedBy != "":
		return p.LimitedBy + " full"
	case p.Verdict == stats.Nothing:
		return "≤ " + p.most()
	case p.Verdict == stats.Unclear && p.N > 1:
		return p.value() + " ?"
	}
	return p.value()
}

// value is the median with its interval.
func (p Price) value() string {
	scale := printed[p.Unit].scale
	s := stats.Summary{Median: p.Median * scale, Low: p.Low * scale, High: p.High * scale, N: p.N}
	if p.Unit == ratioUnit {
		return fmt.Sprintf("%.*f %s", ratioDecimals, s.Median, interval(s, ratioDecimals))
	}
	uncertain := s.HalfWidth()
	if s.N < 2 {
		uncertain = math.Abs(s.Median) / 10
	}
	digits := decimals(uncertain)
	shift := math.Pow10(digits)
	rounded := math.Round(s.Median*shift)/shift + 0 // 0, not -0
	return fmt.Sprintf("%+.*f %s", digits, rounded, interval(s, digits))
}

// most is the largest price that the interval does not rule out, rounded up.
func (p Price) most() string {
	x := max(math.Abs(p.Low-p.neutral()), math.Abs(p.High-p.neutral()))
	if p.Unit == ratioUnit {
		return fmt.Sprintf("%.0f %%", math.Ceil(100*x))
	}
	x *= printed[p.Unit].scale
	digits := decimals(x)
	shift := math.Pow10(digits)
	return fmt.Sprintf("%.*f", digits, math.Ceil(x*shift)/shift)
}

const (
	ratioDecimals = 2
	maxDecimals   = 3
)

// decimals is how many of them a number with that uncertainty deserves: one
// significant digit of the uncertainty is kept, or two where the first is 1.
func decimals(uncertainty float64) int {
	const least = 1.95
	n := 0
	for x := uncertainty; x < least && n < maxDecimals; x *= 10 {
		n++
	}
	return n
}

// in is the price in a sentence, with its unit.
func (p Price) in(text string) string {
	if unit := printed[p.Unit].unit; unit != "" {
		return text + " " + unit
	}
	return text
}

// known reports whether the part costs or gains something.
func (p Price) known() bool { return p.Verdict == stats.Costs || p.Verdict == stats.Gains }
