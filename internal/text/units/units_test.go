package units

import (
	"errors"
	"math"
	"strconv"
	"testing"
	"time"
)

func hint(err error) string {
	var e *textError
	if !errors.As(err, &e) {
		return ""
	}
	return e.Hint()
}

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"1", 1, true}, {"1500", 1500, true}, {"64k", 64 << 10, true}, {"64K", 64 << 10, true},
		{"4M", 4 << 20, true}, {"4m", 4 << 20, true},
		{"1g", 1 << 30, true}, {"2T", 2 << 40, true}, {"0", 0, true},
		{"8388607T", 8388607 << 40, true}, {"+1", 1, true}, {"007", 7, true},
		{"", 0, false}, {"k", 0, false}, {"1.5M", 0, false}, {"-1", 0, false}, {"1kB", 0, false},
		{"1 k", 0, false}, {"1\v", 0, false},
		{"8388608T", 0, false}, {"9223372036854775808", 0, false}, {"0x10", 0, false},
		{"1_000", 0, false}, {"many", 0, false}, {"4\x14", 0, false},
	} {
		t.Run(tt.text, func(t *testing.T) {
			got, err := ParseSize(tt.text)
			if got != tt.want || (err == nil) != tt.ok {
				t.Errorf("ParseSize(%q) = %d, %v", tt.text, got, err)
			}
		})
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64][2]string{0: {"0", "0 B"}, 1: {"1", "1 B"},
		1000: {"1000", "1000 B"}, 1024: {"1k", "1 KiB"}, 1536: {"1536", "1536 B"},
		64 << 20: {"64M", "64 MiB"}, 3 << 40: {"3T", "3 TiB"}, 2 << 50: {"2048T", "2048 TiB"}} {
		if got := [2]string{FormatSize(n), Bytes(n)}; got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestParseKiB(t *testing.T) {
	for s, want := range map[string]uint64{"16384 kB": 16 << 20, "  16 kB\n": 16 << 10,
		"7": 7 << 10, "0 kB": 0} {
		if got, ok := ParseKiB(s); got != want || !ok {
			t.Errorf("%q is %d, %t", s, got, ok)
		}
	}
	for _, s := range []string{"", "kB", "-1 kB", "1 MB", "18014398509481984 kB"} {
		if got, ok := ParseKiB(s); ok {
			t.Errorf("%q is %d", s, got)
		}
	}
}

func TestParseRate(t *testing.T) {
	for s, want := range map[string]float64{"500mbit": 5e8, "2gbit": 2e9, "1.5Gbit": 1.5e9,
		"1kbit": 1e3, "64000bit": 64e3, "1e3MBIT": 1e9, "0bit": 0} {
		if got, err := ParseRate(s); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %g, %v", s, got, err)
		}
	}
	for s, help := range map[string]string{"": "", "fast": "", "500": "use 500mbit", "mbit": "",
		"-1bit": "", "nanbit": "", "infgbit": "", "1e300gbit": "", "5 mbit": "", "5mbyte": ""} {
		if got, err := ParseRate(s); err == nil || hint(err) != help {
			t.Errorf("ParseRate(%q) = %g, %v, %q", s, got, err, hint(err))
		}
	}
	for x, want := range map[float64][2]string{5e8: {"500mbit", "500 Mbit/s"},
		1.5e9: {"1.5gbit", "1.5 Gbit/s"}, 1e3: {"1kbit", "1 kbit/s"}, 999: {"999bit", "999 bit/s"},
		0: {"0bit", "0 bit/s"}} {
		if got := [2]string{FormatRate(x), Rate(x)}; got != want {
			t.Errorf("%g is %q, want %q", x, got, want)
		}
	}
}

func TestParseTime(t *testing.T) {
	for s, want := range map[string]time.Duration{"10s": 10 * time.Second,
		"1m30s": 90 * time.Second, "0": 0, "50us": 50 * time.Microsecond,
		"50µs": 50 * time.Microsecond, "-1s": -time.Second} {
		if got, err := ParseTime(s); err != nil || got != want {
			t.Errorf("ParseTime(%q) = %v, %v", s, got, err)
		}
	}
	for s, help := range map[string]string{"10": "use 10s", "0.5": "use 0.5s", "1e3": "", "": "",
		"soon": "", "10 s": "", "5d": "", "nan": ""} {
		if got, err := ParseTime(s); err == nil || hint(err) != help ||
			err.Error() != "must be a time such as 250ms, 10s or 5m" {
			t.Errorf("ParseTime(%q) = %v, %v, %q", s, got, err, hint(err))
		}
	}
	for s, want := range map[string]time.Duration{"9999999h": math.MaxInt64,
		"-9999999h1s": math.MinInt64} {
		if got, err := ParseTime(s); got != want || !errors.Is(err, strconv.ErrRange) {
			t.Errorf("ParseTime(%q) = %v, %v", s, got, err)
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", time.Second: "1s",
		10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m",
		61 * time.Second:        "1m1s",
		time.Hour + time.Second: "1h0m1s", 250 * time.Millisecond: "250ms",
		999 * time.Microsecond: "999us", -2 * time.Minute: "-2m"} {
		if got := FormatTime(d); got != want {
			t.Errorf("FormatTime(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for x, want := range map[float64]string{60: "60 s", 0.5: "0.5 s", 1e-9: "0.000000001 s",
		1e9: "1000000000 s"} {
		if got := Seconds(x); got != want {
			t.Errorf("Seconds(%g) = %q, want %q", x, got, want)
		}
	}
}

func TestParseShare(t *testing.T) {
	for x, want := range map[float64]string{0.02: "2%", 0.003: "0.3%", 0.07: "7%",
		1. / 3: "33.3333333333%"} {
		if got := FormatShare(x); got != want {
			t.Errorf("FormatShare(%g) = %q, want %q", x, got, want)
		}
	}
	for s, want := range map[string]float64{"2%": 0.02, "2 %": 0.02, " 0.02 ": 0.02,
		"99.9%": 0.999} {
		if got, err := ParseShare(s); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("ParseShare(%q) = %g, %v", s, got, err)
		}
	}
	for s, help := range map[string]string{"2": "use 2%", "0": "", "100%": "", "-1%": "",
		"lots": "", "nan": "", "200": "", "%": ""} {
		if got, err := ParseShare(s); err == nil || hint(err) != help {
			t.Errorf("ParseShare(%q) = %g, %v, %q", s, got, err, hint(err))
		}
	}
}

// FuzzParse checks that formatted values are parsed as the same values.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"1", "64k", "4M", "2T", "8388608T", "500mbit", "1.5gbit", "1e3kbit",
		"250ms", "1m30s", "10", "2%", "0.02", "-0bit", "16384 kB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseSize(s); err == nil {
			if again, err := ParseSize(FormatSize(n)); err != nil || again != n || n < 0 {
				t.Errorf("size %q is %d, written %q", s, n, FormatSize(n))
			}
		}
		if x, err := ParseRate(s); err == nil {
			again, err := ParseRate(FormatRate(x))
			if off := math.Abs(again - x); err != nil || x < 0 || off > 1e-9*x {
				t.Errorf("rate %q is %g, written %q and read again %g, %v", s, x, FormatRate(x),
					again, err)
			}
		}
		if d, err := ParseTime(s); err == nil {
			if again, err := ParseTime(FormatTime(d)); err != nil || again != d {
				t.Errorf("time %q is %v, written %q", s, d, FormatTime(d))
			}
		}
		if x, err := ParseShare(s); err == nil {
			again, err := ParseShare(FormatShare(x))
			if off := math.Abs(again - x); !(x > 0 && x < 1) ||
				x < 1-1e-9 && (err != nil || off > 1e-9*x) {
				t.Errorf("share %q is %g, written %q", s, x, FormatShare(x))
			}
		}
		ParseKiB(s)
	})
}

func TestPlural(t *testing.T) {
	for want, got := range map[string]string{
		"0 rounds": Plural(0, "round"), "1 query": Plural(1, "query"),
		"2 queries": Plural(2, "query"),
		"0 are":     "0 " + Agree(0, "is", "are"), "1 is": "1 " + Agree(1, "is", "are"),
		"2 are": "2 " + Agree(2, "is", "are"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDigits(t *testing.T) {
	for _, tt := range []struct {
		x    float64
		want string
	}{
		{0, "0.000"}, {0.0456, "0.046"}, {0.5, "0.500"}, {1, "1.00"}, {9.87, "9.87"}, {10, "10.0"},
		{31.94, "31.9"},
		{100, "100"}, {12345.6, "12346"}, {-3.14159, "-3.14"},
	} {
		if got := Digits(tt.x); got != tt.want {
			t.Errorf("Digits(%v) = %q, want %q", tt.x, got, tt.want)
		}
	}
	for _, tt := range []struct {
		x    float64
		want string
	}{{0.9996, "1.00"}, {9.996, "10.0"}, {99.96, "100"}} {
		if got := Digits(tt.x); got != tt.want {
			t.Errorf("Digits(%v) = %q, want %q: rounding up adds a digit", tt.x, got, tt.want)
		}
	}
}
