package workload

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// SQL is query against an external database.
const SQL = "sql"

// SQLOptions are sql's own.
type SQLOptions struct {
	Queries int    `json:"queries,omitempty"`              // of a page
	SQL     string `json:"sql,omitempty" printable:"text"` // the query; "": the database's own of about 1 KiB
}

// SQLOf are the load's options if it is sql; else none is given.
func SQLOf(l sample.Load) SQLOptions { return options[SQLOptions](l) }

// ConnectTime is how long it takes to open a connection to an endpoint, the login included.
const ConnectTime = "connect_time"

var sql = Workload{
	About: "A real database, over several routes to it: toll sql.",
	Name:  SQL, Primary: LatencyP50, Noun: "median page time", Rate: Transactions, Trips: true, Foreign: true, none: SQLOptions{},
	Metrics: append([]Metric{{Name: QueryP50, Unit: "s"}, {Name: QueryP99, Unit: "s"}, {Name: ConnectTime, Unit: "s"}}, suspectMetrics...),
	Ratio:   "page ratio", columns: always(pageColumns...), More: moreSQLColumns, words: sqlWords,
	figures: (*Figures).sql, work: pages,
	tail: pageTail,
}

var moreSQLColumns = append([]Column{
	{Head: [2]string{"adds to", "page p50 ms"}, Metric: LatencyP50, Show: Added},
	{Head: [2]string{"adds to", "page p99"}, Metric: LatencyP99, Show: Added},
	{Head: [2]string{"adds to", "query p50"}, Metric: QueryP50, Show: Added},
	connectColumn, rttColumn,
}, suspectColumns...)

// Columns of all endpoints.
var (
	connectColumn = Column{Head: [2]string{"connect", "ms"}, Metric: ConnectTime, Scale: milli}
	rttColumn     = Column{Head: [2]string{"RTT", "ms"}, Metric: RTT, Scale: milli}
)

func sqlWords(l sample.Load) string {
	return fmt.Sprintf("pages of %s", plural(SQLOf(l).Queries, "query")) + sessions(l)
}

// sessions are those of an endpoint, if they are several.
func sessions(l sample.Load) string {
	if l.Streams <= 1 {
		return ""
	}
	return ", " + plural(l.Streams, "session")
}

// valueConnect is what visits to endpoints call ConnectTime.
const valueConnect = "connect"

// Metrics of all endpoints: what else than the route or the server may make them slow.
const (
	Dialled    = "client_connections" // over TCP, of a foreign client
	LookUpTime = "name_lookup_time"
	Resent     = "resent_segments"       // that the client sent again
	OutOfOrder = "out_of_order_segments" // that came to the client before others that were due
	Stops      = "cpu_limit_stops"       // of the container that the client's connections are made in
	// ServerStops are those of the container that serves, if it is one of this machine's.
	ServerStops = "server_cpu_limit_stops"
)

// What visits to endpoints call them.
const (
	ValueLookUp      = "lookup"
	CountLookUp      = "lookup_ns" // of a foreign client, whose metrics may be called lookup
	CountConnections = "connections"
	CountResent      = "resent"
	CountOutOfOrder  = "out_of_order"
	CountStops       = "stops"
	CountServerStops = "server_stops"
)

// suspectMetrics are what all endpoints have of them.
var suspectMetrics = []Metric{{Name: LookUpTime, Unit: "s"}, {Name: Resent, Unit: "segments"}, {Name: OutOfOrder, Unit: "segments"}, {Name: Stops, Unit: "stops"}, {Name: ServerStops, Unit: "stops"}}

// suspectColumns are shown where there is something to show.
var suspectColumns = []Column{
	{Head: [2]string{"look-up", "ms"}, Metric: LookUpTime, Scale: milli, Quiet: "-"},
	{Head: [2]string{"", "resent"}, Metric: Resent, Show: Total, Quiet: "0"},
	{Head: [2]string{"out of", "order"}, Metric: OutOfOrder, Show: Total, Quiet: "0"},
	{Head: [2]string{"CPU", "stops"}, Metric: Stops, Show: Total, Quiet: "-"},
	{Head: [2]string{"server", "CPU stops"}, Metric: ServerStops, Show: Total, Quiet: "-"},
}

// Summed reports whether a metric is of what is rare: most visits have none, so its figure
// is that of all visits together.
func Summed(metric string) bool {
	return slices.Contains([]string{Stalls, Resent, OutOfOrder, Stops, ServerStops}, metric)
}

// sql notes a visit of sql.
func (f *Figures) sql(v sample.Visit, l sample.Load) {
	f.pages(v, l)
	f.endpoint(v)
}

// endpoint notes what all endpoints have.
func (f *Figures) endpoint(v sample.Visit) {
	if x, ok := v.Values[valueConnect]; ok {
		f.set(ConnectTime, x)
	}
	if x := v.Client.TCP.RTT; x > 0 { // not of a Unix socket
		f.set(RTT, x)
	}
	if x, ok := v.Values[ValueLookUp]; ok {
		f.set(LookUpTime, x)
	}
	f.suspects(v)
}

// suspects notes what else than the route or the server may make an endpoint slow.
func (f *Figures) suspects(v sample.Visit) {
	for count, metric := range map[string]string{CountResent: Resent, CountOutOfOrder: OutOfOrder, CountStops: Stops, CountServerStops: ServerStops} {
		if n, ok := v.Client.Counts[count]; ok { // files before 0.1.0 have none
			f.set(metric, float64(n))
		}
	}
}
