package endpoints

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestSlowed(t *testing.T) {
	paces := []float64{0.7, 0.72, 0.75, 0.76, 0.77, 0.78, 0.8}
	client := &sample.ServedClient{Whole: sample.ServedPart{Mean: 200e-6}}
	const said, few = "Following slowed it: in the spells it sent 24 % (22 to 28) less a second than between " +
		"them. ", "By how much following slows requests is not known from so few spells: a longer --budget " +
		"says it."
	for name, c := range map[string]struct {
		s    sample.Served
		want string
	}{
		"clients": {sample.Served{Spells: 8, Pace: paces, Client: client},
			said + "Without toll, clients that wait for each reply have about 152 µs (144 µs to 156 µs) each."},
		"no clients": {sample.Served{Spells: 8, Pace: paces},
			said + "Without toll, requests that wait for others take that much less time."},
		"uncertain": {sample.Served{Spells: 8, Pace: []float64{0.9, 0.97, 1, 1, 1.1, 0.8, 0.9}}, ""},
		"unknown":   {sample.Served{Spells: 8}, ""},
		"few":       {sample.Served{Spells: 5, Pace: paces[:4], Client: client}, few},
		"few, UDP":  {sample.Served{Spells: 5, UDP: true}, ""},
		"all":       {sample.Served{}, ""},
	} {
		if got := slowed(&c.s, Slowed(&c.s)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
