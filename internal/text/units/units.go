// Package units reads and writes sizes, rates, times and shares: as flags, tunes
// and wires have them (ParseSize, ParseRate, ParseTime, ParseShare), as programs
// print them (ParseUnit, ParseNumber), and as the kernel does (ParseKiB). Base
// units are bytes, bit/s and seconds.
//
// What a Format function writes, the Parse function of the same unit reads.
package units

import (
	"math"
	"strconv"
	"strings"
)

// textError says what a text should have been; whoever reports it says which text.
type textError struct {
	want, hint string
}

func (e *textError) Error() string { return "must be " + e.want }

// Hint is what was probably meant; "" if nobody can tell.
func (e *textError) Hint() string { return e.hint }

// ParseShare reads "2%", "2 %" or "0.02" as 0.02. It must be more than 0 and less
// than 1.
func ParseShare(s string) (float64, error) {
	num, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if percent {
		x /= 100
	}
	if err == nil && x > 0 && x < 1 {
		return x, nil
	}
	wrong := &textError{want: "a share such as 2% or 0.02"}
	if err == nil && !percent && x >= 1 && x < 100 {
		wrong.hint = "use " + strings.TrimSpace(s) + "%"
	}
	return 0, wrong
}

// FormatShare is a share in per cent, as ParseShare reads it.
func FormatShare(x float64) string { return strconv.FormatFloat(100*x, 'g', 12, 64) + "%" }

// number reads what stands before a unit; ok is false for what is no finite number.
func number(s string) (x float64, ok bool) {
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}
