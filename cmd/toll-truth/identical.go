package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// inert is a tune that changes nothing: it is what bulk's path does not care about
// in writes of 128 KiB, and what rr does anyway.
const inert = "nodelay=on"

// sameShare is how many verdicts on identical modes are `same` at least.
const sameShare = 0.95

// tally counts verdicts.
type tally struct {
	n      int
	by     map[stats.Verdict]int
	widest float64
}

func (t *tally) add(v stats.Verdict, e estimate) {
	if t.by == nil {
		t.by = map[stats.Verdict]int{}
	}
	t.n++
	t.by[v]++
	t.widest = max(t.widest, e.half)
}

// identical reports whether these are verdicts on modes that are the same.
func (t *tally) identical() bool {
	return t.n > 0 && t.by[stats.Better] == 0 && t.by[stats.Worse] == 0 && float64(t.by[stats.Same]) >= sameShare*float64(t.n)
}

// identical runs toll, as users do, on identical modes: bridge, and bridge with a tune
// that changes nothing.
func (t *trial) identical(ctx context.Context) ([]table, error) {
	out := table{title: "Identical modes",
		text: fmt.Sprintf("`toll compare bridge --baseline bridge --tune %s --budget %s`, %d times, each with its own seed. It holds if no verdict "+
			"is better or worse and at least %.0f %% are same.", inert, t.scale.aa.each, t.scale.aa.n, percent*sameShare),
		head: []string{"load", "verdicts", "same", "unclear", "better", "worse", "no result", "widest"}}
	tallies := map[string]*tally{bulk: {}, rr: {}}
	for i := range t.scale.aa.n {
		r, err := t.compare(ctx, "bridge", "--baseline", "bridge", "--tune", inert, "--load", bulk+","+rr,
			"--budget", t.scale.aa.each.String(), "--seed", strconv.FormatUint(t.seed+uint64(i), 10))
		if err != nil {
			return nil, err
		}
		for _, load := range []string{bulk, rr} {
			e, ratio, err := ratioOf(r, "bridge", inert, load)
			if err != nil {
				t.say("aa: run %d of %d: %v", i+1, t.scale.aa.n, err)
				tallies[load].add("", e)
				continue
			}
			t.say("aa: run %d of %d: %s: %s, %s", i+1, t.scale.aa.n, load, e, ratio.Verdict)
			tallies[load].add(ratio.Verdict, e)
		}
	}
	// Judged together: so few of one load say little.
	all := tally{by: map[stats.Verdict]int{}}
	for _, load := range []string{bulk, rr} {
		one := tallies[load]
		out.add(noWord, one.cells(load)...)
		all.n += one.n
		all.widest = max(all.widest, one.widest)
		for v, n := range one.by {
			all.by[v] += n
		}
	}
	out.add(holdsIf(all.identical()), all.cells("both")...)
	return []table{out}, nil
}

func (t *tally) cells(name string) []string {
	out := []string{name, strconv.Itoa(t.n)}
	for _, v := range []stats.Verdict{stats.Same, stats.Unclear, stats.Better, stats.Worse, ""} {
		out = append(out, strconv.Itoa(t.by[v]))
	}
	return append(out, halfWidth(t.widest))
}
