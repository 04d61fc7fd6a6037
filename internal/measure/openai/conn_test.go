package openai

import (
	"slices"
	"testing"
)

func TestRecords(t *testing.T) {
	record := func(n int) []byte { return append([]byte{23, 3, 3, byte(n >> 8), byte(n)}, make([]byte, n)...) }
	all := slices.Concat(record(300), record(0), record(2), record(1))
	want := []int{5, 305, 310, 315, 317, 322, 323} // ends of headers and records
	for _, most := range []int{1, 2, 7, 1000} {
		var r records
		at := 0
		var ends []int
		for b := all; len(b) > 0; {
			n := r.take(b[:min(most, len(b))])
			if n == 0 {
				t.Fatalf("nothing of %d bytes", len(b))
			}
			b, at = b[n:], at+n
			ends = append(ends, at)
		}
		for _, end := range want {
			if !slices.Contains(ends, end) {
				t.Errorf("by %d: nothing ends at %d: %v", most, end, ends)
			}
		}
	}
}
