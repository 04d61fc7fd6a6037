package workload

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Outline returns a dry run's description of a load that is measured by visits.
func (w Workload) Outline(l sample.Load) string {
	if w.outline != nil {
		if text := w.outline(l); text != "" {
			return text
		}
	}
	return fmt.Sprintf("%s: warm-up %.6g s, window %.6g s", w.Name, l.Warmup, l.Window)
}

// Words describes the load with its options.
func (w Workload) Words(l sample.Load) string {
	text := w.words(l)
	if l.Nodelay != "" {
		text += ", TCP_NODELAY " + l.Nodelay
	}
	return text
}

func messages(l sample.Load) string {
	m := MessagesOf(l)
	if m.Request == m.Reply {
		return units.Plural(m.Request, "byte") + " each way"
	}
	return fmt.Sprintf("%s out, %s back", units.Plural(m.Request, "byte"), units.Plural(m.Reply, "byte"))
}

// Milliseconds formats a time in seconds as milliseconds, with as many decimals as small values
// need: "40 ms", "0.120 ms".
func Milliseconds(s float64) string {
	const (
		ms       = 1e3
		tenth    = 10
		least    = 1.95 // below it two digits are needed
		decimals = 3
	)
	n := 0
	for x := s * ms / tenth; x < least && n < decimals; x *= 10 {
		n++
	}
	return fmt.Sprintf("%.*f ms", n, s*ms)
}

// Briefly returns a time with three digits in a fitting unit: "738 µs", "40.2 ms", "10.0 s".
func Briefly(s float64) string {
	const (
		toMilli, toMicro = 1e3, 1e6
		second, thousand = 0.9995, 0.0009995 // where rounding adds a digit
	)
	switch {
	case s >= second:
		return threeDigits(s) + " s"
	case s >= thousand:
		return threeDigits(toMilli*s) + " ms"
	}
	return threeDigits(toMicro*s) + " µs"
}

func threeDigits(x float64) string {
	const hundreds, tens = 99.95, 9.995
	switch {
	case x >= hundreds:
		return fmt.Sprintf("%.0f", x)
	case x >= tens:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
