package cli

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func flagsOf(parsed func(values)) *cobra.Command {
	var v values
	c := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true,
		Run: func(*cobra.Command, []string) {
			parsed(v)
		}}
	c.SetFlagErrorFunc(flagError)
	c.SetOut(io.Discard)
	fl := c.Flags()
	slice := timeFlag(&v.slice, 4*time.Millisecond, time.Millisecond, time.Second)
	slice.orZero = true
	fl.Var(slice, "slice", "")
	fl.Var(timeFlag(&v.budget, time.Minute, 1, unlimited[time.Duration]()), "budget", "")
	fl.Var(wholeFlag(&v.n, 1, 1, 256), "n", "")
	fl.Var(wholeFlag(&v.rounds, 0, 0, unlimited[int]()), "rounds", "")
	fl.Var(seedFlag(&v.seed), "seed", "")
	fl.Var(numberFlag(&v.x, 0, 0, 1e9), "x", "")
	fl.Var(shareFlag(&v.share, 0.02), "share", "")
	fl.Var(sizeFlag(&v.size, 1<<10, 1, 64<<20), "size", "")
	fl.Var(rateFlag(&v.rate, 0, 1e3, 400e9), "rate", "")
	fl.BoolVar(&v.quiet, "quiet", false, "")
	return c
}

type values struct {
	slice, budget  time.Duration
	n, rounds      int
	seed           uint64
	x, share, rate float64
	size           int64
	quiet          bool
}

func TestFlagsTaken(t *testing.T) {
	preset := values{slice: 4 * time.Millisecond, budget: time.Minute, n: 1, share: 0.02,
		size: 1 << 10}
	for _, tt := range []struct {
		args   string
		change func(*values)
	}{
		{"", func(*values) {}},
		{"--slice 0", func(v *values) { v.slice = 0 }},
		{"--slice 0s", func(v *values) { v.slice = 0 }},
		{"--slice 1s", func(v *values) { v.slice = time.Second }},
		{"--budget 1ns", func(v *values) { v.budget = 1 }},
		{"--budget 1h30m", func(v *values) { v.budget = 90 * time.Minute }},
		{"--n 0x10", func(v *values) { v.n = 16 }},
		{"--rounds 9223372036854775807", func(v *values) { v.rounds = unlimited[int]() }},
		{"--seed 18446744073709551615", func(v *values) { v.seed = unlimited[uint64]() }},
		{"--x 1e9", func(v *values) { v.x = 1e9 }},
		{"--share 5%", func(v *values) { v.share = 0.05 }},
		{"--size 4K", func(v *values) { v.size = 4 << 10 }},
		{"--rate 1kbit", func(v *values) { v.rate = 1e3 }},
		{"--rate 400gbit", func(v *values) { v.rate = 400e9 }},
		{"--rate 1.5Gbit", func(v *values) { v.rate = 1.5e9 }},
		{"--quiet", func(v *values) { v.quiet = true }},
	} {
		want, got := preset, values{}
		tt.change(&want)
		c := flagsOf(func(v values) { got = v })
		c.SetArgs(strings.Fields(tt.args))
		if err := c.Execute(); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", tt.args, got, err, want)
		}
	}
}

func TestFlagsRefused(t *testing.T) {
	const help = "see x --help"
	for _, tt := range []struct{ arg, want, hint string }{
		{"--slice=999us", "--slice 999us: must be from 1ms to 1s, or 0", ""},
		{"--slice=-1ms", "--slice -1ms: must be from 1ms to 1s, or 0", ""},
		{"--slice=4", "--slice 4: must be from 1ms to 1s, or 0", ""},
		{"--slice=1.", `--slice "1.": must be a time such as 250ms, 10s or 5m`, "use 1.s"},
		{"--budget=0", "--budget 0: must be more than 0", ""},
		{"--budget=-1", "--budget -1: must be more than 0", ""},
		{"--budget=-99999999h", "--budget -99999999h: must be more than 0", ""},
		{"--budget=99999999h", "--budget 99999999h: must be less than 292 years", ""},
		{"--slice=99999999h", "--slice 99999999h: must be from 1ms to 1s, or 0", ""},
		{"--budget=10", `--budget "10": must be a time such as 250ms, 10s or 5m`, "use 10s"},
		{"--budget=soon", `--budget "soon": must be a time such as 250ms, 10s or 5m`, help},
		{"--n=257", "--n 257: must be from 1 to 256", ""},
		{"--n=99999999999999999999", "--n 99999999999999999999: must be from 1 to 256", ""},
		{"--n=1.5", `--n "1.5": must be a whole number`, help},
		{"--n=", `--n "": must be a whole number`, help},
		{"--rounds=-1", "--rounds -1: must be at least 0", ""},
		{"--seed=-1", `--seed "-1": must be a whole number`, help},
		{"--seed=18446744073709551616",
			"--seed 18446744073709551616: must be from 0 to 18446744073709551615", ""},
		{"--x=NaN", "--x NaN: must be from 0 to 1e+09", ""},
		{"--x=1e999", "--x 1e999: must be from 0 to 1e+09", ""},
		{"--x=few", `--x "few": must be a number`, help},
		{"--share=2", `--share "2": must be a share such as 2% or 0.02`, "use 2%"},
		{"--share=0", `--share "0": must be more than 0% and less than 100%`, help},
		{"--share=200%", `--share "200%": must be more than 0% and less than 100%`, help},
		{"--share=lots", `--share "lots": must be a share such as 2% or 0.02`, help},
		{"--size=0", "--size 0: must be from 1 to 64M", ""},
		{"--size=65M", "--size 65M: must be from 1 to 64M", ""},
		{"--size=4x", `--size "4x": must be a number of bytes such as 512, 4k or 1M`, help},
		{"--rate=999bit", "--rate 999bit: must be from 1kbit to 400gbit", ""},
		{"--rate=1e9gbit", "--rate 1e9gbit: must be from 1kbit to 400gbit", ""},
		{"--rate=0", `--rate "0": must be a rate such as 500mbit or 10gbit`, help},
		{"--rate=500000", "--rate 500000: must be from 1kbit to 400gbit", ""},
		{"--rate=500", `--rate "500": must be a rate such as 500mbit or 10gbit`, "use 500mbit"},
		{"--quiet=maybe", `--quiet "maybe": must be true or false`, help},
		{"--none", "unknown flag: --none", help},
	} {
		c := flagsOf(func(values) { t.Errorf("%s was taken", tt.arg) })
		c.SetArgs([]string{tt.arg})
		err := c.Execute()
		var f *failure
		if !errors.As(err, &f) || err.Error() != tt.want || f.Hint() != tt.hint ||
			f.code != exitUsage {
			t.Errorf("%s: %v, want %s; hint %q, want %q", tt.arg, err, tt.want, f.Hint(), tt.hint)
		}
	}
}
