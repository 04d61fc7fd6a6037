package analysis

import (
	"fmt"
	"math"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// Price is the cost of a part in one metric: a difference or, for throughput, a ratio.
type Price struct {
	Unit    string        `json:"unit"` // the metric's, or RatioUnit
	Median  float64       `json:"median"`
	Low     float64       `json:"low"`
	High    float64       `json:"high"`
	N       int           `json:"n"`
	Epochs  int           `json:"epochs,omitempty"`
	Verdict stats.Verdict `json:"verdict"` // costs, gains, nothing, unclear
	// LimitedBy is the link that both sides fill, like "wire" or "card". Its rate hides the part's
	// cost in throughput.
	LimitedBy string `json:"limited_by,omitempty"`
	// Varies means that Low and High are the range of nine tenths of the pairs, see Ratio.
	Varies bool `json:"varies,omitempty"`
}

// CoreUnit is the unit of a share of one core.
const CoreUnit = "core"

// RatioUnit is the unit of a price that is a ratio.
const RatioUnit = "ratio"

var printed = map[string]struct {
	scale float64
	unit  string
}{"s": {1e6, "µs"}, "ms": {1, "ms"}, "s/B": {1e9, "s"}, RatioUnit: {1, ""}, CoreUnit: {100, "%"}}

func (p Price) inMilliseconds() Price {
	const ms = 1e3
	p.Unit = "ms"
	p.Median, p.Low, p.High = ms*p.Median, ms*p.Low, ms*p.High
	return p
}

// Milliseconds does what String does, in ms.
func (p Price) Milliseconds() string {
	return p.inMilliseconds().String()
}

func (p Price) neutral() float64 {
	if p.Unit == RatioUnit {
		return 1
	}
	return 0
}

// String returns the price in µs, s a gigabyte or as a ratio: "+3.4 ±0.8", "≤ 1.2" if nothing is
// measurable, with "?" if unclear, or "wire full".
func (p Price) String() string {
	switch {
	case p.LimitedBy != "":
		return p.LimitedBy + " full"
	case p.Verdict == stats.Nothing:
		return "≤ " + p.Most()
	case p.Varies:
		return p.Value()
	case p.Verdict == stats.Unclear && p.N > 1:
		return p.Value() + " ?"
	}
	return p.Value()
}

// Word returns the verdict as tables show it.
func (p Price) Word() string { return p.Ratio().Word() }

// Mark does what Ratio.Mark does. Nothing measurable is "=".
func (p Price) Mark() string { return p.Ratio().Mark() }

// Undecided does what Ratio.Undecided does.
func (p Price) Undecided() bool { return p.Ratio().Undecided() }

// span returns the range of a price that varies. If all of it has one sign, the smaller amount
// comes first.
func (p Price) span(scale float64) string {
	low, high := p.Low*scale, p.High*scale
	if high < 0 {
		return "-" + Span(-high, -low)
	}
	if low > 0 && p.Unit != RatioUnit {
		return "+" + Span(low, high)
	}
	return Span(low, high)
}

// Value returns the median with its interval, or the range of what varies.
func (p Price) Value() string {
	scale := printed[p.Unit].scale
	if p.Varies && p.Unit != RatioUnit {
		return p.span(scale)
	}
	s := stats.Summary{Median: p.Median * scale, Low: p.Low * scale, High: p.High * scale, N: p.N}
	if p.Unit == RatioUnit {
		return p.Ratio().String()
	}
	uncertain := s.HalfWidth()
	if s.N < 2 {
		uncertain = math.Abs(s.Median) / 10
	}
	digits := digitsOf(uncertain, s.Median)
	median := signed(s.Median, digits)
	interval := Interval(s, digits)
	switch uneven := strings.HasPrefix(interval, "("); {
	case uneven && s.Low < 0: // three signed numbers are hard to read
		interval = fmt.Sprintf("±%.*f", digits, s.HalfWidth())
	}
	return median + " " + interval
}

// digitsOf returns the number of decimals. A figure that hardly varied is rounded to a readable
// number.
func digitsOf(uncertain, median float64) int {
	const read = 200
	return Decimals(max(uncertain, math.Abs(median)/read))
}

// Even returns a signed time in µs or ms, without the unit, and the larger half of its interval, so
// that a column of prices has one form: "+2.7 ±0.6". Where that half reaches 0 although the verdict
// is clear, it has both ends: "+0.8 (0.7–4.2)". For a ratio it does what Ratio.Even does.
func (p Price) Even(unit string) string {
	if p.Unit == RatioUnit {
		return p.Ratio().Even()
	}
	if p.Unit == "s" && unit == "ms" {
		p = p.inMilliseconds()
	}
	scale := printed[p.Unit].scale
	if p.Varies {
		return p.span(scale)
	}
	s := stats.Summary{Median: p.Median * scale, Low: p.Low * scale, High: p.High * scale, N: p.N}
	if s.N < 2 {
		return p.Value()
	}
	uncertain := s.HalfWidth()
	if p.Ratio().uneven(s, 0) { // so that its nearer end is not rounded to 0
		uncertain = min(uncertain, math.Abs(s.Low), math.Abs(s.High))
	}
	digits := digitsOf(uncertain, s.Median)
	return signed(s.Median, digits) + " " + p.Ratio().evenly(s, 0, digits)
}

// signed returns a number with its sign, and 0 instead of -0.
func signed(x float64, digits int) string {
	shift := math.Pow10(digits)
	return fmt.Sprintf("%+.*f", digits, math.Round(x*shift)/shift+0)
}

// Fitting returns what String returns followed by the unit, in the unit that fits: "+360.9 ±0.7
// ms".
func (p Price) Fitting() string {
	size := max(math.Abs(p.Median), math.Abs(p.Low), math.Abs(p.High))
	switch {
	case p.Unit != "s" || size < 1e-3 || p.N < 2:
		return p.In(p.String())
	case p.Verdict == stats.Nothing:
		return p.Milliseconds() + " ms"
	}
	text := p.Even("ms") + " ms"
	if p.Verdict == stats.Unclear && !p.Varies {
		text += " ?"
	}
	return text
}

// Amount returns the unsigned price: "2.7 µs (2.1–3.3)".
func (p Price) Amount() string {
	out := printed[p.Unit]
	if p.Unit == "s" {
		switch seconds := math.Abs(p.Median); {
		case seconds >= 1:
			out.scale, out.unit = 1, "s"
		case seconds >= 1e-3:
			out.scale, out.unit = 1e3, "ms"
		}
	}
	if p.Varies {
		return strings.TrimLeft(p.span(out.scale), "+-") + " " + out.unit
	}
	s := stats.Summary{Median: p.Median * out.scale, Low: p.Low * out.scale,
		High: p.High * out.scale, N: p.N}
	if s.Median < 0 {
		s.Median, s.Low, s.High = -s.Median, -s.High, -s.Low
	}
	return enclosed(s, " "+out.unit, digitsOf(s.HalfWidth(), s.Median))
}

// Size returns how far the price is from costing nothing, whatever its sign.
func (p Price) Size() float64 {
	if p.Unit == RatioUnit {
		return math.Abs(math.Log(p.Median))
	}
	return math.Abs(p.Median)
}

// Most returns the largest amount in the interval, whatever its sign, rounded up and without a
// unit.
func (p Price) Most() string {
	x := max(math.Abs(p.Low-p.neutral()), math.Abs(p.High-p.neutral()))
	if p.Unit == RatioUnit {
		return fmt.Sprintf("%.0f %%", math.Ceil(100*x))
	}
	x *= printed[p.Unit].scale
	digits := Decimals(x)
	shift := math.Pow10(digits)
	return fmt.Sprintf("%.*f", digits, math.Ceil(x*shift)/shift)
}

const maxDecimals = 3

// Decimals returns the number of decimals, at most 3, that keep one significant digit of the
// uncertainty, or two if the first is 1.
func Decimals(uncertainty float64) int {
	const least = 1.95
	n := 0
	for x := uncertainty; x < least && n < maxDecimals; x *= 10 {
		n++
	}
	return n
}

// In returns text followed by the price's unit, which comes before the mark of an unclear price.
func (p Price) In(text string) string {
	const unclear = " ?"
	unit := printed[p.Unit].unit
	if unit == "" {
		return text
	}
	if figure, ok := strings.CutSuffix(text, unclear); ok {
		return figure + " " + unit + unclear
	}
	return text + " " + unit
}

// Ratio returns the price in the form of a ratio, which has its words and marks.
func (p Price) Ratio() Ratio {
	return Ratio{Median: p.Median, Low: p.Low, High: p.High, N: p.N, Verdict: p.Verdict,
		Varies: p.Varies}
}

// Known reports whether the part costs or gains something.
func (p Price) Known() bool { return p.Verdict == stats.Costs || p.Verdict == stats.Gains }

// Plain returns the median with its interval in ms, whatever the verdict.
func (p Price) Plain() string {
	const ms = 1e3
	s := stats.Summary{Median: ms * p.Median, Low: ms * p.Low, High: ms * p.High, N: p.N}
	n := Decimals(s.HalfWidth())
	if p.Varies {
		return p.span(ms) + " ms"
	}
	if s.N < 2 {
		return signed(s.Median, n) + " ms"
	}
	return fmt.Sprintf("%s ms (%s to %s)", signed(s.Median, n), signed(s.Low, n), signed(s.High, n))
}
