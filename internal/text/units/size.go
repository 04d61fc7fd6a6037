package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
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
