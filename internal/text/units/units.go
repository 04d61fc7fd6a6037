// Package units parses and formats sizes, rates, times and shares: of flags, tunes and wires
// (ParseSize, ParseRate, ParseTime, ParseShare), of programs' output (ParseUnit, ParseNumber), and
// of the kernel (ParseKiB). Base units are bytes, bit/s and seconds.
//
// A Parse function accepts what the Format function of the same unit returns.
package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

type textError struct {
	want, meant string
	cause       error // may be nil
}

func (e *textError) Error() string { return "must be " + e.want }
func (e *textError) Unwrap() error { return e.cause }

// Meant returns the text that was probably meant, or "".
func (e *textError) Meant() string { return e.meant }

// Hint returns the advice to use the text that was probably meant, or "".
func (e *textError) Hint() string {
	if e.meant == "" {
		return ""
	}
	return "use " + e.meant
}

// ParseShare parses "2%", "2 %" or "0.02" as 0.02. It must be more than 0 and less than 1.
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
		wrong.meant = strings.TrimSpace(s) + "%"
	} else if !math.IsNaN(x) && (err == nil || errors.Is(err, strconv.ErrRange)) {
		wrong.want = "more than 0% and less than 100%"
	}
	return 0, wrong
}

// FormatShare formats a share in per cent for ParseShare.
func FormatShare(x float64) string { return strconv.FormatFloat(100*x, 'g', 12, 64) + "%" }

// number parses a number. ok is false if s is not a finite one.
func number(s string) (x float64, ok bool) {
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// Agree returns the word that goes with a number of things, such as "is" or "are".
func Agree(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

// Plural returns a number with the noun in singular or plural, such as "1 query" or "2 queries".
func Plural(n int, noun string) string {
	return fmt.Sprintf("%d %s", n, Agree(n, noun, Plurals(noun)))
}

// Plurals returns a noun's plural, such as "queries".
func Plurals(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		noun = stem + "ie"
	}
	return noun + "s"
}

// TwoDigits formats a number with two significant digits, or all before the point.
func TwoDigits(x float64) string {
	switch a := math.Abs(x); {
	case a >= 9.95 || a == 0:
		return fmt.Sprintf("%.0f", x)
	case a >= 0.995:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2g", x)
}

// Digits formats a number with three significant digits, or all before the point, without exponent.
func Digits(x float64) string {
	switch a := math.Abs(x); { // the bounds are where rounding adds a digit
	case a >= 99.95:
		return fmt.Sprintf("%.0f", x)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", x)
	case a >= 0.9995:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}
