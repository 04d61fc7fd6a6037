package analysis

import "github.com/bridgetoll/bridgetoll/internal/sample"

// Metrics of query besides those of round trips, of which one is a page here.
const (
	QueryP50 = "query_p50"
	QueryP99 = "query_p99"
)

// pages are the pages of a visit, parts included.
func pages(v sample.Visit, l sample.Load) float64 {
	return float64(v.Client.Trips) / float64(max(1, l.Queries))
}

// addPages adds a visit of query.
func (s *series) addPages(v sample.Visit, l sample.Load, busy float64) {
	s.addLatency(v)
	s.addTrips(v, pages(v, l)/v.Client.Window, busy)
	s.addTimes(v, "query", map[string]float64{QueryP50: 50, QueryP99: 99})
}
