package units

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var digits = regexp.MustCompile(`[0-9]+`)

// ParseTime parses a time such as "250ms", "10s", "1m30s" or "0". Of a time that is too large, it
// returns the longest one and an error that wraps strconv.ErrRange.
func ParseTime(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil {
		return d, nil
	}
	wrong := &textError{want: "a time such as 250ms, 10s or 5m"}
	if _, err := time.ParseDuration(s + "s"); err == nil {
		wrong.meant = s + "s"
	}
	if _, err := time.ParseDuration(digits.ReplaceAllString(s, "1")); err == nil &&
		strings.HasPrefix(s, "-") {
		return math.MinInt64, &textError{want: "more than -292 years", cause: strconv.ErrRange}
	} else if err == nil {
		return math.MaxInt64, &textError{want: "less than 292 years", cause: strconv.ErrRange}
	}
	return 0, wrong
}

// FormatTime returns the shortest text that ParseTime parses as d, in ASCII.
func FormatTime(d time.Duration) string {
	s := strings.ReplaceAll(d.String(), "µ", "u")
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Seconds formats a time for tables and sentences, without an exponent: "0.5 s".
func Seconds(s float64) string { return strconv.FormatFloat(s, 'f', -1, 64) + " s" }
