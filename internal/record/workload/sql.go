package workload

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// SQL is query against an external database.
const SQL = "sql"

// SQLOptions are the options of sql alone.
type SQLOptions struct {
	Queries int    `json:"queries,omitempty"`              // of a page
	SQL     string `json:"sql,omitempty" printable:"text"` // the query; "": the database's default of about 1 KiB
}

// SQLOf returns the load's options if it is sql, or the zero value.
func SQLOf(l sample.Load) SQLOptions { return options[SQLOptions](l) }

// ConnectTime is the time to open a connection to an endpoint, login included.
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

// sessions returns the number of an endpoint's sessions in words, if there are several.
func sessions(l sample.Load) string {
	if l.Streams <= 1 {
		return ""
	}
	return ", " + plural(l.Streams, "session")
}

// valueConnect is the name of ConnectTime in visits to endpoints.
const valueConnect = "connect"

// Metrics of all endpoints: reasons for slowness other than the route or the server.
const (
	Dialled    = "client_connections" // over TCP, of a foreign client
	LookUpTime = "name_lookup_time"
	Resent     = "resent_segments"       // that the client sent again
	OutOfOrder = "out_of_order_segments" // that the client received before others that were due
	Stops      = "cpu_limit_stops"       // of the container with the client's connections
	// ServerStops are those of the server's container, if it is on this machine.
	ServerStops = "server_cpu_limit_stops"
)

// Their names in visits to endpoints.
const (
	ValueLookUp      = "lookup"
	CountLookUp      = "lookup_ns" // of a foreign client, whose metrics may be called lookup
	CountConnections = "connections"
	CountResent      = "resent"
	CountOutOfOrder  = "out_of_order"
	CountStops       = "stops"
	CountServerStops = "server_stops"
)

// suspectMetrics are those that all endpoints have.
var suspectMetrics = []Metric{{Name: LookUpTime, Unit: "s"}, {Name: Resent, Unit: "segments"}, {Name: OutOfOrder, Unit: "segments"}, {Name: Stops, Unit: "stops"}, {Name: ServerStops, Unit: "stops"}}

// suspectColumns are shown if any row has a value.
var suspectColumns = []Column{
	{Head: [2]string{"look-up", "ms"}, Metric: LookUpTime, Scale: milli, Quiet: "-"},
	{Head: [2]string{"", "resent"}, Metric: Resent, Show: Total, Quiet: "0"},
	{Head: [2]string{"out of", "order"}, Metric: OutOfOrder, Show: Total, Quiet: "0"},
	{Head: [2]string{"CPU", "stops"}, Metric: Stops, Show: Total, Quiet: "-"},
	{Head: [2]string{"server", "CPU stops"}, Metric: ServerStops, Show: Total, Quiet: "-"},
}

// Summed reports whether a metric counts rare events: its figure is the sum over all visits.
func Summed(metric string) bool {
	return slices.Contains([]string{Stalls, Resent, OutOfOrder, Stops, ServerStops}, metric)
}

// sql adds a visit of sql.
func (f *Figures) sql(v sample.Visit, l sample.Load) {
	f.pages(v, l)
	f.endpoint(v)
}

// endpoint adds what all endpoints have.
func (f *Figures) endpoint(v sample.Visit) {
	if x, ok := v.Values[valueConnect]; ok {
		f.set(ConnectTime, x)
	}
	if x := v.Client.TCP.RTT; x > 0 { // a Unix socket has none
		f.set(RTT, x)
	}
	if x, ok := v.Values[ValueLookUp]; ok {
		f.set(LookUpTime, x)
	}
	f.suspects(v)
}

// suspects adds reasons for slowness other than the route or the server.
func (f *Figures) suspects(v sample.Visit) {
	for count, metric := range map[string]string{CountResent: Resent, CountOutOfOrder: OutOfOrder, CountStops: Stops, CountServerStops: ServerStops} {
		if n, ok := v.Client.Counts[count]; ok { // files before 0.1.0 have none
			f.set(metric, float64(n))
		}
	}
}
