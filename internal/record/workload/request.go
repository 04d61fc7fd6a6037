package workload

import (
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Request is requests of toll's own client, or of a foreign one, to a server that runs.
const Request = "request"

// Counts of requests by their replies.
const (
	CountUnanswered = "unanswered"   // over UDP, or of HTTP: the server ended the connection
	CountDNSError   = "dns_error "   // and the error's name: replies of DNS
	CountHTTPStatus = "http_status " // and its number and words: replies of HTTP other than 2xx
)

// RequestOf returns the load's options, or the zero value for other kinds.
func RequestOf(l sample.Load) sample.RequestOptions { return options[sample.RequestOptions](l) }

var request = Workload{
	About: "A request and its reply at a time, over a route to a server that runs: toll trace ADDRESS.",
	Name:  Request, Primary: LatencyP50, Noun: "median request", Rate: Transactions,
	Trips: true, trip: "request", Foreign: true,
	words: requestWords, outline: requestOutline,
	figures: func(f *Figures, v sample.Visit, _ sample.Load) { f.roundTrips(v) }, work: roundTrips,
}

func requestWords(l sample.Load) string {
	if client := RequestOf(l).Client; client != "" {
		return "requests of " + client
	}
	return RequestOf(l).Asks
}

func requestOutline(l sample.Load) string {
	if client := RequestOf(l).Client; client != "" {
		return "client: " + printable.Line(client)
	}
	return ""
}
