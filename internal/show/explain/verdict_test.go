package explain

import (
	"math"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

func TestVerdictsAreExplainedAsJudged(t *testing.T) {
	const same, sure = 0.03, 0.99
	for word, says := range map[stats.Verdict][]string{
		stats.Better: {"99 %", "better side of 1", "further from it than the control's ratio",
			"the verdict is not same", "95 % interval lies beyond the noise floor"},
		stats.Worse: {"99 %", "worse side of 1", "further from it than the control's ratio",
			"the verdict is not same", "95 % interval lies beyond the noise floor"},
		stats.Same: {"whole 95 % interval", "within --same (3 %) of 1"},
		stats.Unclear: {"reaches beyond --same", "not far enough from 1", "too few rounds",
			"may exclude 1"},
	} {
		entries, err := Find(string(word))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range says {
			if !strings.Contains(strings.Join(entries[0].Text, " "), s) {
				t.Errorf("%s is not explained by %q: %s", word, s, entries[0].Text)
			}
		}
	}
	seen := map[stats.Verdict]int{}
	excludes1 := 0
	for centre := -0.08; centre <= 0.08; centre += 0.004 {
		for _, off := range []float64{0.002, 0.006, 0.01, 0.02} {
			for _, bias := range []float64{0, 0.01} {
				e := stats.Estimate{Centre: centre, Error: off, Freedom: 20, Pairs: 100, Epochs: 10}
				want := stats.Unclear
				low, high := e.Interval(sure)
				r := e.Ratio() // 95 %
				switch {
				case r.Low >= 1-same && r.High <= 1+same:
					want = stats.Same
				case math.Exp(low) > 1+bias:
					want = stats.Better
				case math.Exp(-high) > 1+bias:
					want = stats.Worse
				case r.Low > 1 || r.High < 1:
					excludes1++
				}
				seen[want]++
				if got := e.Judge(bias, same, true); got != want {
					t.Errorf("%.3f (%.3f–%.3f), control off by %.2f: %s, by what is explained %s",
						r.Median, r.Low, r.High, bias, got, want)
				}
			}
		}
	}
	if len(seen) != 4 || excludes1 == 0 {
		t.Errorf("not all verdicts were tried: %v, %d unclear ones exclude 1", seen, excludes1)
	}
	for _, x := range []struct {
		low, high float64
		want      stats.Verdict
	}{{0.98, 1.02, stats.Same}, {1.06, 1.2, stats.Better}, {0.8, 0.94, stats.Worse},
		{1.04, 1.2, stats.Unclear}} {
		if got := stats.JudgeSame(stats.Summary{Median: (x.low + x.high) / 2, Low: x.low, High: x.high, N: 9}, 0.05, same, true); got != x.want {
			t.Errorf("by rounds %g to %g: %s, by what is explained %s", x.low, x.high, got, x.want)
		}
	}
}
