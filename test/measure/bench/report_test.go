package bench

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// The machine of these seven rounds drifts. The ratios do not.
func fabricated() report {
	r := report{
		options: options{rounds: 7, window: time.Second, seed: 3},
		environment: sample.Environment{CPUModel: "A CPU", CPUs: 2, Kernel: "6.1.0",
			Congestion: "reno"},
		date:     time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		versions: []string{"iperf 3.12", "qperf 0.4.11"},
		missing:  []missing{{sockperf, sockperf}},
		visits:   map[cell]map[int]visit{},
		again:    2, disturbed: 1,
	}
	// Ratios to iperf3 and qperf, on separate CPUs and on one.
	worth := map[cell]float64{pairs[0].own: 1.1, pairs[1].own: 0.9, pairs[3].own: 1.2}
	for round := range r.rounds {
		drift := 1 + 0.1*float64(round)
		wobble := 1 + 0.01*float64(round%3-1)
		for _, group := range groupsFor(r.missing) {
			for _, c := range group {
				x := drift
				twin := c
				twin.anew = false
				if w := worth[twin]; w != 0 {
					x *= w
				}
				if c == twin && c.tool == toll {
					x *= wobble
				}
				if c.load == start {
					x = 0.2
				}
				r.add(c, round, madeUp(c, x))
			}
		}
	}
	r.note("round 2: something: it went wrong")
	return r
}

func madeUp(c cell, x float64) visit {
	v := visit{rss: 6 << 20, seen: outside{elapsed: 1, client: 0.9, server: 0.6}}
	switch c.load {
	case bulk:
		v.bits = 8e9 * x
		v.seen.bytes = 1e9 * x
	case rr:
		v.oneWay = 1e-5 * x
		v.seen.packets = 1e5 / x
	case udp:
		v.bits = 5e8 * x
		v.seen.bytes, v.seen.packets = 5e8*x/8, 4e4*x
	case crr:
		v.perSecond = 1e4 * x
	case start:
		v = visit{started: x}
	}
	return v
}

func TestMarkdown(t *testing.T) {
	r := fabricated()
	testgolden.Check(t, "report.md", r.markdown())
}

func TestMarkdownOfNothing(t *testing.T) {
	r := report{}
	got := r.markdown()
	if strings.Contains(got, "yes") {
		t.Errorf("nothing was measured and a target holds:\n%s", got)
	}
}

func TestHeld(t *testing.T) {
	quiet := stats.Summary{Median: 1, Low: 0.99, High: 1.01, N: 15}
	loud := stats.Summary{Median: 1, Low: 0.8, High: 1.2, N: 15}
	for _, c := range []struct {
		name            string
		low, high       float64
		n               int
		noise           stats.Summary
		higher, higher2 string
	}{
		{"above", 1.05, 1.07, 15, quiet, "yes", "no"},
		{"below", 0.93, 0.95, 15, quiet, "no", "yes"},
		{"even", 0.99, 1.01, 15, quiet, "yes", "yes"},
		{"wide", 0.9, 1.1, 15, quiet, "unclear", "unclear"},
		{"noise-is-no-excuse", 0.93, 0.95, 15, loud, "unclear", "yes"},
		{"few", 1.05, 1.07, 5, quiet, "unclear: too few rounds", "no"},
		{"none", 1, 1, 0, quiet, "not measured", "not measured"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stats.Summary{Median: (c.low + c.high) / 2, Low: c.low, High: c.high, N: c.n}
			if got := held(s, c.noise, true); got != c.higher {
				t.Errorf("higher is better: got %q, want %q", got, c.higher)
			}
			if got := held(s, c.noise, false); got != c.higher2 {
				t.Errorf("lower is better: got %q, want %q", got, c.higher2)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	groups := groupsFor(nil)
	first := order(groups, 1, 0)
	if !slices.Equal(first, order(groups, 1, 0)) {
		t.Error("the same seed and round give another order")
	}
	if slices.Equal(first, order(groups, 1, 1)) && slices.Equal(first, order(groups, 1, 2)) {
		t.Error("the order does not depend on the round")
	}
	seen := map[cell]int{}
	for _, c := range first {
		seen[c]++
	}
	n := 0
	for _, g := range groups {
		n += len(g)
		at := slices.IndexFunc(first, func(c cell) bool { return slices.Contains(g, c) })
		for _, c := range first[at : at+len(g)] {
			if !slices.Contains(g, c) {
				t.Errorf("%s is among %v", c, g)
			}
		}
	}
	if len(seen) != n || len(first) != n {
		t.Errorf("%d visits to %d cells, want %d", len(first), len(seen), n)
	}
}

func TestGroupsWithoutPeers(t *testing.T) {
	for _, g := range groupsFor([]missing{{taskset, "util-linux"}}) {
		for _, c := range g {
			if c.tool != toll {
				t.Errorf("%s cannot be pinned", c)
			}
		}
	}
}

func TestPhases(t *testing.T) {
	for _, p := range pairs {
		ownWarmup, own := p.own.phases(2 * time.Second)
		warmup, measured := p.peer.phases(2 * time.Second)
		if ownWarmup != warmup || own != measured || own <= 0 {
			t.Errorf("%s: %v + %v, %s: %v + %v", p.own, ownWarmup, own, p.peer, warmup, measured)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"unknown", []string{"-nonsense"}},
		{"argument", []string{"more"}},
		{"rounds", []string{"-rounds", "0"}},
		{"window", []string{"-window", "1500ms"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if o, err := parse(io.Discard, c.args); err == nil {
				t.Errorf("got %+v and no error", o)
			}
		})
	}
}
