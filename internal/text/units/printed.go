package units

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

type Unit struct {
	Base  string  // s, bit/s, B, B/s, 1/s or 1; "" for a plain number
	Scale float64 // the factor from a printed number to the base unit
}

// times are units with too many spellings for prefixes.
var times = map[string]float64{
	"ns":   1e-9,
	"nsec": 1e-9,
	"us":   1e-6,
	"usec": 1e-6,
	"µs":   1e-6,
	"μs":   1e-6,
	"ms":   1e-3,
	"msec": 1e-3,
	"s":    1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "min": 60, "m": 60, "h": 3600,
}

// kinds are units that take a prefix.
var kinds = map[string]string{
	"":           "",
	"/s":         "1/s",
	"/sec":       "1/s",
	"req/s":      "1/s",
	"requests/s": "1/s",
	"Trans/s":    "1/s",
	"tps":        "1/s",
	"ops/s":      "1/s",
	"Hz":         "1/s",
	"bit/s":      "bit/s",
	"bits/s":     "bit/s",
	"bits/sec":   "bit/s",
	"bit/sec":    "bit/s",
	"bps":        "bit/s",
	"b/s":        "bit/s",
	"B/s":        "B/s", "B/sec": "B/s", "Bytes/s": "B/s", "Bytes/sec": "B/s", "bytes/s": "B/s",
	"B": "B", "Bytes": "B", "bytes": "B", "bit": "bit", "bits": "bit",
}

const (
	thousand = 1000
	percent  = 0.01
)

// ParseUnit parses a unit as programs print it: ms, Gbits/sec, MiB/s, k, %.
func ParseUnit(s string) (Unit, error) {
	if scale, ok := times[s]; ok {
		return Unit{"s", scale}, nil
	}
	if s == "%" {
		return Unit{"1", percent}, nil
	}
	if base, ok := kinds[s]; ok {
		return Unit{base, 1}, nil
	}
	by, rest := float64(thousand), ""
	if len(s) > 0 {
		rest = s[1:]
	}
	if r, ok := strings.CutPrefix(rest, "i"); ok {
		by, rest = step, r
	}
	power := strings.Index(" KMGT", strings.ToUpper(s[:min(1, len(s))]))
	base, known := kinds[rest]
	if power < 1 || !known || strings.HasPrefix(s, "m") || strings.HasPrefix(s, "g") ||
		strings.HasPrefix(s, "t") {
		return Unit{}, fmt.Errorf("unknown unit %q", s)
	}
	return Unit{base, math.Pow(by, float64(power))}, nil
}

// thousands matches numbers with commas between thousands. In others, a comma may be the decimal
// point.
var thousands = regexp.MustCompile(`^[-+]?[0-9]{1,3}(,[0-9]{3})+([.eE]|$)`)

// ParseNumber parses a number as programs print it, perhaps with commas between thousands, and
// multiplies it by scale.
func ParseNumber(s string, scale float64) (float64, error) {
	plain := s
	if thousands.MatchString(s) {
		plain = strings.ReplaceAll(s, ",", "")
	}
	x, err := strconv.ParseFloat(plain, 64)
	if x *= scale; err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return x, nil
}
