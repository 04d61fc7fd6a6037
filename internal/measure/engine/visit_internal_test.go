package engine

import (
	"errors"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestPunctual(t *testing.T) {
	for _, tt := range []struct {
		planned, window float64
		ok              bool
	}{
		{0.25, 0.25, true}, {0.25, 0.31, true}, {0.25, 0.42, false}, {0.25, 0.15, false},
		{0.05, 0.07, true}, {0.05, 0.09, false}, {2, 2.4, true}, {2, 2.6, false},
	} {
		err := punctual(tt.planned, sample.Party{Window: tt.planned},
			sample.Party{Window: tt.window})
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, errStarved) {
			t.Errorf("%v s instead of %v s: %v", tt.window, tt.planned, err)
		}
	}
}

func TestStalled(t *testing.T) {
	const mega = 1 << 20
	for _, tt := range []struct {
		name          string
		window        float64
		resent, total int64
		kind          string
		want          bool
	}{
		{"no-byte-in-the-window", 0.0001, mega, 9 * mega, workload.Bulk, true},
		{"a-late-end", 0.66, mega, 9 * mega, workload.Bulk, true},
		{"in-time", 0.3, mega, 9 * mega, workload.Bulk, false},
		{"nothing-lost", 0.66, 0, 9 * mega, workload.Bulk, false},
		{"little-lost", 0.0001, 7240, 500 * mega, workload.Bulk, false},
		{"the-other-way", 0.66, mega, 9 * mega, workload.BulkReverse, true},
		{"round-trips", 0.66, mega, 9 * mega, workload.RR, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := sample.Party{Window: tt.window, TotalSent: tt.total,
				TCP: sample.TCPInfo{Resent: tt.resent}}
			v := &sample.Visit{Ends: sample.Ends{Client: p, Server: sample.Party{Window: 0.3}}}
			if got := stalled(sample.Load{Kind: tt.kind, Window: 0.3}, v); got != tt.want {
				t.Errorf("%t", got)
			}
		})
	}
}
