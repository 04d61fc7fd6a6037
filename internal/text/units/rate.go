package units

import (
	"fmt"
	"math"
	"strings"
)

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
