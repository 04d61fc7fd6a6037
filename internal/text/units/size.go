package units

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const step = 1024

const prefixes = "kMGT"

// ParseSize parses a number of bytes, with a prefix of either case for powers of 1024: 1500, 64k,
// 4M, 1G.
func ParseSize(s string) (int64, error) {
	wrong := &textError{want: "a number of bytes such as 512, 4k or 1M"}
	num, unit := s, int64(1)
	if n := len(s); n > 0 {
		if i := strings.IndexByte("kmgt", s[n-1]|('a'-'A')); i >= 0 {
			num = s[:n-1]
			for range i + 1 {
				unit *= step
			}
		}
	}
	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, wrong
	}
	return n * unit, nil
}

// FormatSize returns the shortest text that ParseSize parses as n.
func FormatSize(n int64) string {
	n, i := scaled(n, len(prefixes))
	if i == 0 {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10) + prefixes[i-1:i]
}

// Bytes formats n for tables and sentences, such as "64 KiB", in the largest unit without a
// fraction.
func Bytes(n int64) string {
	names := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	n, i := scaled(n, len(names)-1)
	return fmt.Sprintf("%d %s", n, names[i])
}

// scaled divides n by 1024 at most most times, without a remainder.
func scaled(n int64, most int) (_ int64, times int) {
	for times < most && n >= step && n%step == 0 {
		n /= step
		times++
	}
	return n, times
}

// ParseKiB parses an amount of memory from /proc, such as "16384 kB" with 1024 bytes in each kB.
func ParseKiB(s string) (bytes uint64, ok bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), " kB")),
		10, 64)
	if err != nil || n > math.MaxUint64/step {
		return 0, false
	}
	return n * step, true
}

// rates are tc's names of bit rates and those of reports, in bit/s, the largest first.
var rates = []struct {
	name, words string
	scale       float64
}{{"gbit", "Gbit/s", 1e9}, {"mbit", "Mbit/s", 1e6}, {"kbit", "kbit/s", 1e3}, {"bit", "bit/s", 1}}

// ParseRate parses a rate such as "500mbit", in whole bit/s.
func ParseRate(s string) (bitsPerSecond float64, err error) {
	wrong := &textError{want: "a rate such as 500mbit or 10gbit"}
	for _, u := range rates {
		num, is := strings.CutSuffix(strings.ToLower(s), u.name)
		if !is {
			continue
		}
		x, ok := number(num)
		if x = math.Round(x * u.scale); !ok || x < 0 || math.IsInf(x, 0) {
			return 0, wrong
		}
		return math.Abs(x), nil // of -0
	}
	if x, ok := number(s); ok && x > 0 {
		wrong.meant = s + "mbit"
	}
	return 0, wrong
}

// FormatRate formats a rate for ParseRate: "500mbit".
func FormatRate(bitsPerSecond float64) string {
	x, name, _ := inRate(bitsPerSecond)
	return fmt.Sprintf("%g%s", x, name)
}

// Rate formats a rate for tables and sentences: "500 Mbit/s".
func Rate(bitsPerSecond float64) string {
	x, _, words := inRate(bitsPerSecond)
	return fmt.Sprintf("%g %s", x, words)
}

func inRate(rate float64) (x float64, name, words string) {
	for _, u := range rates {
		if x = rate / u.scale; x >= 1 {
			return x, u.name, u.words
		}
	}
	least := rates[len(rates)-1]
	return rate, least.name, least.words
}

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
