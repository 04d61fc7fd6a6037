package workload

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestUsageDiffers(t *testing.T) {
	for name, tt := range map[string]struct {
		tokens, events int64 // of 2 responses
		says           string
	}{
		"each has one":           {128, 128, ""},
		"the end is counted":     {132, 128, ""},
		"short responses":        {8, 4, ""},
		"almost a tenth":         {140, 128, ""},
		"a guess":                {160, 128, "80 tokens a response (usage), but 64 events"},
		"several in one":         {128, 44, "events may have several tokens"},
		"parts":                  {128, 300, "events may have parts of tokens"},
		"the rate of the events": {128, 64, "By events, tokens /s is 20"},
		"an older file":          {128, 0, ""},
	} {
		v := &sample.Visit{Ends: sample.Ends{Client: sample.Party{Trips: 2, Counts: map[string]int64{
			CountTokens: tt.tokens}}}}
		if tt.events > 0 {
			v.Client.Counts[CountEvents] = tt.events
		}
		got := usageDiffers(Seen{Visits: []*sample.Visit{v},
			Median: func(string) float64 { return 40 }})
		if (got == "") != (tt.says == "") || !strings.Contains(got, tt.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
