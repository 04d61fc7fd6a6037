package workload

import (
	"cmp"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Query is a chatty application: pages of small queries in sequence.
const Query = "query"

// QueryOf returns the load's options, or the zero value for other kinds.
func QueryOf(l sample.Load) sample.QueryOptions { return options[sample.QueryOptions](l) }

func queryMessages(o *sample.QueryOptions) *sample.Messages { return &o.Messages }

func queryFill(l *sample.Load) {
	set(l, func(o *sample.QueryOptions) {
		o.Messages, o.Queries = filled(o.Messages), cmp.Or(o.Queries, 1)
	})
}

// Metrics of query. Its round trip is a page.
const (
	QueryP50 = "query_p50"
	QueryP99 = "query_p99"
)

var query = Workload{
	About: "A chatty application: a page is 20 small queries to a database, one after another on one connection. It shows how a mode's latency adds up.",
	Name:  Query, Gist: "a chatty application", Flags: queryFlags, fill: queryFill,
	time: queryTime, notSliced: sliced,
	Primary: LatencyP50, Noun: "median page time", Rate: Transactions, Trips: true, trip: "page",
	words: queryWords,
	times: timed(TimeQuery), Nodelay: true,
	figures: (*Figures).pages, work: pages,
	tail: pageTail,
}

// MaxQueries bounds a page.
const MaxQueries = 10_000

var queryFlags = []Flag{
	requestFlag(100, queryMessages), replyFlag(1024, queryMessages),
	{Name: "queries", Help: "queries of a page",
		Value: Whole{20, 1, MaxQueries, func(l *sample.Load, n int) {
			set(l, func(o *sample.QueryOptions) { o.Queries = n })
		}}},
	nodelayFlag,
}

func queryTime(l *sample.Load, w sample.Wire) {
	page := float64(QueryOf(*l).Queries) * w.RoundTrip()
	l.Warmup, l.Window = 0.05+page, Measured*page
}

func queryWords(l sample.Load) string {
	o := QueryOf(l)
	return fmt.Sprintf("query, pages of %s, %s out, %s back", units.Plural(o.Queries, "query"),
		units.Plural(o.Request, "byte"), units.Plural(o.Reply, "byte"))
}

// TimeQuery names the histogram of single queries.
const TimeQuery = "query"

// pageTail is the thinnest printed tail of pages, their p99.
const pageTail = 0.01

func page(l sample.Load) int { return max(1, QueryOf(l).Queries, SQLOf(l).Queries) }

// pages returns the number of pages, including parts of pages.
func pages(v sample.Visit, l sample.Load) float64 {
	return float64(v.Client.Trips) / float64(page(l))
}

func (f *Figures) pages(v sample.Visit, l sample.Load) {
	f.latency(v)
	f.trips(v, pages(v, l)/v.Client.Window)
	f.times(v, TimeQuery)
}
