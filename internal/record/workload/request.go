package workload

import (
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Request is requests of toll's own client to a server that runs.
const Request = "request"

// RequestOf returns the load's options, or the zero value for other kinds.
func RequestOf(l sample.Load) sample.RequestOptions { return options[sample.RequestOptions](l) }

var request = Workload{
	About: "A request and its reply at a time, over a route to a server that runs: toll trace ADDRESS.",
	Name:  Request, Primary: LatencyP50, Noun: "median request", Rate: Transactions, Trips: true,
	Foreign: true,
	words:   func(l sample.Load) string { return RequestOf(l).Asks },
	figures: func(f *Figures, v sample.Visit, _ sample.Load) { f.roundTrips(v) }, work: roundTrips,
}
