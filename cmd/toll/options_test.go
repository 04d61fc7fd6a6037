package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/sample"
)

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"1", 1, true}, {"1500", 1500, true}, {"64k", 64 << 10, true}, {"64K", 64 << 10, true}, {"4M", 4 << 20, true}, {"1g", 1 << 30, true},
		{"2T", 2 << 40, true}, {"0", 0, true}, {"8388607T", 8388607 << 40, true},
		{"", 0, false}, {"k", 0, false}, {"1.5M", 0, false}, {"-1", 0, false}, {"+1", 0, false}, {"1kB", 0, false}, {"1 k", 0, false},
		{"8388608T", 0, false}, {"9223372036854775808", 0, false}, {"0x10", 0, false}, {"1_000", 0, false}, {"many", 0, false},
	} {
		t.Run(tt.text, func(t *testing.T) {
			got, err := parseSize(tt.text)
			if got != tt.want || (err == nil) != tt.ok {
				t.Errorf("parseSize(%q) = %d, %v", tt.text, got, err)
			}
		})
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"1", "64k", "4M", "1g", "2T", "k", "", "1.5M", "8388608T"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseSize(s)
		if err != nil {
			return
		}
		if n < 0 {
			t.Fatalf("%q is %d", s, n)
		}
		again, err := parseSize(formatSize(n))
		if err != nil || again != n {
			t.Errorf("%q is %d, written %q and read again %d, %v", s, n, formatSize(n), again, err)
		}
	})
}

// Without options the loads are as they were before there were any: what files
// and dry runs say of them, and how many threads they have.
func TestDefaultLoads(t *testing.T) {
	f := &loadFlags{kinds: []string{"bulk", "rr"}, streams: 1, request: 1, reply: 1, queries: 20, options: optionFlags{send: sendCopy, connections: 1}}
	if err := f.check(); err != nil {
		t.Fatal(err)
	}
	got := []sample.Load{bulkLoad(f, sample.Wire{}), rrLoad(f, sample.Wire{})}
	want := []sample.Load{{Streams: 1, Warmup: 0.1}, {Request: 1, Reply: 1, Warmup: 0.05}}
	if !slices.Equal(got, want) || f.threads() != 1 {
		t.Errorf("got %+v, %d threads", got, f.threads())
	}
}

func TestThreads(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags loadFlags
		want  int
	}{
		{"streams", loadFlags{streams: 4}, 4},
		{"both-ways", loadFlags{streams: 4, options: optionFlags{bidir: true}}, 8},
		{"connections", loadFlags{streams: 1, options: optionFlags{connections: 16}}, 16},
		{"under-load", loadFlags{streams: 1, options: optionFlags{connections: 1, underLoad: true}}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.flags.threads(); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// Many threads get longer visits, in which each has its turns; few do not.
func TestTakeTurns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		load   sample.Load
		longer bool
	}{
		{"one", sample.Load{Streams: 1}, false},
		{"sixteen", sample.Load{Streams: 16}, false},
		{"both-ways", sample.Load{Streams: 16, Bidir: true}, true},
		{"many", sample.Load{Streams: 200}, true},
		{"many-transfers", sample.Load{Streams: 200, Bytes: 1}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := tt.load
			l.Warmup, l.Window = 0.1, 0.001
			takeTurns(&l)
			if grown := l.Warmup > 0.1 && l.Window > 0.001; grown != tt.longer {
				t.Errorf("warm-up %g s, window %g s", l.Warmup, l.Window)
			}
		})
	}
}

// A window holds enough requests, and a crowd has none of the options that it
// cannot count.
func TestOptionsThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		rate, window float64
		hint         string
	}{{0, 0.25, ""}, {40, 0.25, ""}, {39, 0.25, "--window 1s"}, {0.5, 1, "--window 20s"}} {
		err := (&optionFlags{rate: tt.rate}).fits(tt.window)
		if (err == nil) != (tt.hint == "") {
			t.Errorf("rate %g in %g s: %v", tt.rate, tt.window, err)
		}
		if f := (*failure)(nil); errors.As(err, &f) && f.Hint() != tt.hint {
			t.Errorf("hint %q, want %q", f.Hint(), tt.hint)
		}
	}
	if err := (&optionFlags{}).crowd(); err != nil {
		t.Error(err)
	}
	for _, o := range []optionFlags{{bidir: true}, {count: 1}, {rate: 1}, {underLoad: true}} {
		if err := o.crowd(); err == nil || !strings.Contains(err.Error(), "toll scale has no --") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
