package workload

import (
	"reflect"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestUsageDiffers(t *testing.T) {
	for name, tt := range map[string]struct {
		tokens, events int64 // of 2 responses
		differs        bool
	}{
		"each has one":       {128, 128, false},
		"the end is counted": {132, 128, false},
		"short responses":    {8, 4, false},
		"almost a tenth":     {140, 128, false},
		"a guess":            {160, 128, true},
		"several in one":     {128, 44, true},
		"parts":              {128, 300, true},
		"an older file":      {128, 0, false},
	} {
		v := &sample.Visit{Ends: sample.Ends{Client: sample.Party{Trips: 2,
			Counts: map[string]int64{
				CountTokens: tt.tokens}}}}
		if tt.events > 0 {
			v.Client.Counts[CountEvents] = tt.events
		}
		got := usageDiffers(Seen{Visits: []*sample.Visit{v},
			Median: func(string) float64 { return 40 }})
		tokens, events := float64(tt.tokens)/2, float64(tt.events)/2
		want := []Doubt{{Code: UsageDiffers, Values: map[string]float64{CountTokens: tokens,
			CountEvents: events, WordRate: 40 * events / tokens}}}
		if !tt.differs {
			want = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
