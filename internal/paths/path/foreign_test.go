package path

import (
	"math"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestWitnessForeign(t *testing.T) {
	both := func(fb, fp, bb, bp uint64) sample.Counters {
		return sample.Counters{ForwardBytes: fb, ForwardPackets: fp, BackwardBytes: bb,
			BackwardPackets: bp}
	}
	full := both(1_000_000, 700, 40_000, 400)
	for _, c := range []struct {
		name   string
		expect Expect
		got    sample.Counters // another hop counted in full
		want   string          // "": witnessed
	}{
		{"alike", Carries, full, ""},
		{"in-larger-packets", Carries, both(950_000, 20, 26_000, 300), ""},
		{"sent-again-before-it", Carries, both(900_000, 650, 40_000, 400), ""},
		{"half-elsewhere", Carries, both(500_000, 350, 40_000, 400),
			" x (): counted 500000 bytes to the server and 40000 back, another hop 828180 and 0"},
		{"elsewhere", Carries, both(0, 0, 0, 0), " x (): saw 0 packets to the server and 0 back"},
		{"one-way", Carries, both(1_000_000, 700, 0, 0),
			" x (): saw 700 packets to the server and 0 back"},
		{"loopback", CarriesBoth, both(1_040_000, 1100, 0, 0), ""},
		{"loopback-unused", CarriesBoth, both(0, 0, 0, 0), " x (): saw no packet"},
		{"loopback-half", CarriesBoth, both(400_000, 300, 0, 0),
			" x (): counted 400000 bytes both ways, another hop 828180"},
		{"rule", Matches, sample.Counters{Hits: 12}, ""},
		{"rule-not-hit", Matches, sample.Counters{}, " x (): saw no connection"},
		{"relay", Relays, sample.Counters{Hits: 1}, ""},
		{"relay-unused", Relays, both(5000, 0, 5000, 0), " x (): saw no connection"},
		{"guard", Untouched, both(270, 3, 90, 1), ""},
		{"guard-used", Untouched, both(600_000, 9_000, 0, 0),
			" x (): counted 600000 bytes in 9000 packets, the path must not use it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			hops := []Hop{{Name: "whole"}, {Name: "x", Expect: c.expect}}
			w := WitnessForeign(hops, make([]sample.Counters, 2), []sample.Counters{full, c.got}, 1)
			if w.OK != (c.want == "") || w.Evidence != c.want {
				t.Errorf("witness %+v, want %q", w, c.want)
			}
		})
	}
	w := WitnessForeign([]Hop{{Expect: CarriesBoth}}, make([]sample.Counters, 1),
		make([]sample.Counters, 1), 1)
	if w.OK {
		t.Error("a path without a packet was witnessed")
	}
	some := []sample.Counters{both(210, 3, 210, 3)} // neighbour discovery
	for arrived, ok := range map[float64]bool{0: false, 1: true, math.NaN(): true} {
		if w := WitnessForeign([]Hop{{}}, make([]sample.Counters, 1), some, arrived); w.OK != ok {
			t.Errorf("with %v arrivals %+v", arrived, w)
		}
	}
}
