package plan

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestTracingOf(t *testing.T) {
	if got := TracingOf(sample.Plan{}, 1); got != sample.Untraced {
		t.Errorf("a comparison's epoch is %q", got)
	}
	for _, hooks := range []bool{false, true} {
		p := sample.Plan{Seed: 7, Trace: &sample.TracePlan{Hooks: hooks}}
		n, orders := len(TracingStates(p)), map[sample.Tracing]bool{}
		for block := range 20 {
			var got []sample.Tracing
			for i := range n {
				got = append(got, TracingOf(p, block*n+i))
			}
			orders[got[0]] = true
			slices.Sort(got)
			want := slices.Sorted(slices.Values(TracingStates(p)))
			if !slices.Equal(got, want) {
				t.Errorf("block %d has %q, want each of %q once", block, got, want)
			}
		}
		if len(orders) != n {
			t.Errorf("20 blocks begin with %v only", orders)
		}
	}
}

func TestTraceHasTwoBlocksAtLeast(t *testing.T) {
	p := sliced(t, nil, slicedRR)
	p.Trace = &sample.TracePlan{}
	if got := LeastRounds(p); got != 6 {
		t.Errorf("%d rounds without hooks", got)
	}
	p.Trace.Hooks = true
	if got := LeastRounds(p); got != 8 {
		t.Errorf("%d rounds with hooks", got)
	}
	if got, want := LeastTime(p), 8*RoundTime(p); got != want {
		t.Errorf("least time %v, want whole epochs from the first: %v", got, want)
	}
}
