package units

import (
	"math"
	"strings"
	"testing"
)

func TestParseUnit(t *testing.T) {
	for _, c := range []struct {
		in    string
		base  string
		scale float64
	}{
		{"ns", "s", 1e-9}, {"usec", "s", 1e-6}, {"µs", "s", 1e-6}, {"ms", "s", 1e-3},
		{"secs", "s", 1}, {"m", "s", 60}, {"h", "s", 3600},
		{"%", "1", 0.01}, {"", "", 1}, {"k", "", 1e3}, {"K", "", 1e3}, {"Ki", "", 1024},
		{"M", "", 1e6}, {"G", "", 1e9}, {"T", "", 1e12},
		{"/s", "1/s", 1}, {"tps", "1/s", 1}, {"kHz", "1/s", 1e3}, {"Kreq/s", "1/s", 1e3},
		{"Mops/s", "1/s", 1e6},
		{"bps", "bit/s", 1}, {"kbps", "bit/s", 1e3}, {"Gbit/s", "bit/s", 1e9},
		{"Mbits/sec", "bit/s", 1e6}, {"Gibit/s", "bit/s", 1 << 30},
		{"B/s", "B/s", 1}, {"MBytes/sec", "B/s", 1e6}, {"GB/sec", "B/s", 1e9},
		{"KiB/s", "B/s", 1024},
		{"bytes", "B", 1}, {"MB", "B", 1e6}, {"TiB", "B", 1 << 40}, {"kbit", "bit", 1e3},
	} {
		t.Run(strings.NewReplacer("/", "-per-", "%", "percent").Replace("of-"+c.in),
			func(t *testing.T) {
				u, err := ParseUnit(c.in)
				if err != nil || u.Base != c.base || u.Scale != c.scale {
					t.Errorf("ParseUnit(%q) = %+v, %v; want %g %s", c.in, u, err, c.scale, c.base)
				}
			})
	}
	// A byte has no thousandth; m, g and t are not prefixes.
	for _, in := range []string{"mB", "gbps", "tB", "mbps", "kms", "iB", "KKB", "Ki%", "lightyears",
		" ", "µ", "\xff", "s ", "PB"} {
		if u, err := ParseUnit(in); err == nil {
			t.Errorf("ParseUnit(%q) = %+v", in, u)
		}
	}
}

func FuzzPrinted(f *testing.F) {
	for _, s := range []string{"ms", "Gbits/sec", "MiB/s", "k", "%", "µs", "\xff"} {
		f.Add("1,500.25", s)
	}
	f.Fuzz(func(t *testing.T, num, unit string) {
		u, err := ParseUnit(unit)
		if err != nil {
			return
		}
		if !(u.Scale > 0) || math.IsInf(u.Scale, 0) {
			t.Fatalf("%q is %+v", unit, u)
		}
		if x, err := ParseNumber(num, u.Scale); err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			t.Errorf("%q %q is %g", num, unit, x)
		}
	})
}
