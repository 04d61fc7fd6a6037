package main

import (
	"testing"
)

func TestParseBitrate(t *testing.T) {
	for word, want := range map[string]float64{"": 0, "500mbit": 5e8, "2gbit": 2e9, "1.5Gbit": 1.5e9, "1kbit": 1e3, "64000bit": 64e3, "400gbit": 4e11} {
		if got, err := parseBitrate(word); err != nil || got != want {
			t.Errorf("%q is %g, %v; want %g", word, got, err, want)
		}
	}
	for _, word := range []string{"0", "500", "0mbit", "-1mbit", "1e9gbit", "nanmbit", "infgbit", "mbit", "999bit", "500mb", "500 mbit/s"} {
		if got, err := parseBitrate(word); err == nil {
			t.Errorf("%q was taken as %g", word, got)
		}
	}
}

func FuzzParseBitrate(f *testing.F) {
	f.Add("500mbit")
	f.Add("0x1p10gbit")
	f.Fuzz(func(t *testing.T, s string) {
		if x, err := parseBitrate(s); err == nil && x != 0 && !(x >= minBitrate && x <= maxBitrate) {
			t.Errorf("%q is %g", s, x)
		}
	})
}
