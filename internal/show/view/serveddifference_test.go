package view

import (
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

func TestServedDifference(t *testing.T) {
	old, now := busyServer(), busyServer()
	for i, s := range []*sample.Served{&old, &now} {
		s.Started = time.Date(2026, 11, 23+i, 5, 0, 0, 0, time.UTC)
		s.Environment.Kernel = []string{"6.1.0", "6.12.0"}[i]
		parts := append(append([]sample.ServedPart{}, s.Parts...), s.Whole)
		for k := range parts {
			for n := range 10 {
				parts[k].Tenths = append(parts[k].Tenths, parts[k].P50+float64(n%2)*us)
			}
		}
		s.Parts, s.Whole = parts[:len(s.Parts)], parts[len(s.Parts)]
	}
	now.Parts[1].P50, now.Whole.P50, now.Parts[2].P50 = 98*us, 102*us, 0.2*us
	now.Requests /= 2
	for name, both := range map[string][2]*sample.Served{
		"requests-difference.txt": {&old, &now}, "requests-difference-none.txt": {&old, &old}} {
		golden(t, name, written(t, "table",
			ServedDifference(difference.JudgeServed("old.json", both[0],
				"new.json", both[1])), format.Options{Width: 80}))
	}
}
