package engine

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestFitted(t *testing.T) {
	l := sample.Load{Warmup: 0.05, Window: 0.25}
	for _, c := range []struct {
		name   string
		budget int
		rate   float64
		same   bool
	}{
		{"no-visit-yet", 100, 0, true},
		{"enough", 28_232, 20_000, true},
		{"half", 3_000, 20_000, false},
		{"hardly-any", 201, 20_000, false},
		{"none", 0, 20_000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := fitted(l, c.budget, c.rate)
			if (got == l) != c.same {
				t.Fatalf("fitted to %+v", got)
			}
			if c.same {
				return
			}
			if got.Window < leastWindow || got.Window > l.Window || got.Warmup < 0 ||
				got.Warmup > l.Warmup {
				t.Errorf("fitted to %+v", got)
			}
			if n := c.rate * (got.Warmup + got.Window + tail.Seconds()); got.Window > leastWindow &&
				n > float64(c.budget) {
				t.Errorf("%g connections in %+v", n, got)
			}
		})
	}
}
