package endpoint

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// record counts a time beyond the histogram's range as its longest.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(0, int64(d)), h.HighestTrackableValue()))
}

func encoded(hs map[string]*hdrhistogram.Histogram) (map[string]*sample.EncodedHisto, error) {
	out := map[string]*sample.EncodedHisto{}
	for name, h := range hs {
		if h.TotalCount() == 0 {
			continue
		}
		e, err := sample.Encode(h)
		if err != nil {
			return nil, err
		}
		out[name] = e
	}
	return out, nil
}

// median returns the upper median, or 0 without values.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Clone(xs)
	slices.Sort(s)
	return s[len(s)/2]
}
