package workload

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// SQL is query against an external database.
const SQL = "sql"

// SQLOf returns the load's options, or the zero value for other kinds.
func SQLOf(l sample.Load) sample.SQLOptions { return options[sample.SQLOptions](l) }

// ConnectTime is the time to open a connection to an endpoint, with login.
const ConnectTime = "connect_time"

var sql = Workload{
	About:   "A real database, over several routes to it: toll sql.",
	Name:    SQL,
	Primary: LatencyP50,
	Noun:    "median page time",
	Rate:    Transactions,
	Trips:   true,
	trip:    "page",
	Foreign: true,
	words:   sqlWords,
	figures: (*Figures).sql, work: pages,
	tail: pageTail,
}

func sqlWords(l sample.Load) string {
	return fmt.Sprintf("pages of %s", units.Plural(SQLOf(l).Queries, "query")) + sessions(l)
}

func sessions(l sample.Load) string {
	if l.Streams <= 1 {
		return ""
	}
	return ", " + units.Plural(l.Streams, "session")
}

// valueConnect is ConnectTime's name in Visit.Values.
const valueConnect = "connect"

// Dialled counts a foreign client's TCP connections.
const Dialled = "client_connections"

func (f *Figures) sql(v sample.Visit, l sample.Load) {
	f.pages(v, l)
	f.endpoint(v)
}

func (f *Figures) endpoint(v sample.Visit) {
	if x, ok := v.Values[valueConnect]; ok {
		f.set(ConnectTime, x)
	}
	if x := v.Client.TCP.RTT; x > 0 { // 0 for a Unix socket
		f.set(RTT, x)
	}
	if x, ok := v.Values[ValueLookUp]; ok {
		f.set(LookUpTime, x)
	}
	if x, ok := v.Values[ValueKeptExcess]; ok {
		f.set(KeptExcess, x)
	}
	f.suspects(v)
}
