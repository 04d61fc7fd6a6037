package load

import (
	"math"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestQuery(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const queries = 5
		client, server := both(u, sample.Load{
			Kind: "query", Options: sample.QueryOptions{
				Messages: sample.Messages{Request: 100, Reply: 1024}, Queries: queries}})
		asked := client.Times[workload.TimeQuery]
		if client.Trips == 0 || client.Latency == nil || asked == nil {
			u.Fatalf("client %+v", client)
		}
		// The first and the last page of the window may be cut.
		pages := client.Latency.TotalCount()
		if most := client.Trips / queries; pages > most || pages < most-2 {
			u.Errorf("%d queries, %d pages", client.Trips, pages)
		}
		if n := asked.TotalCount(); n > client.Trips || n < client.Trips-1 {
			u.Errorf("%d queries, %d timed", client.Trips, n)
		}
		if client.Sent != 100*client.Trips || client.Received != 1024*client.Trips ||
			server.TotalRecv != client.TotalSent {
			u.Errorf("client %+v\nserver %+v", client, server)
		}
		if page, query := client.Latency.Mean(), asked.Mean(); page < 0.8*queries*query ||
			page > 1.5*queries*query {
			u.Errorf("a page of %d queries takes %.0f ns, a query %.0f ns", queries, page, query)
		}
	})
}

func TestQueryOverADelay(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const (
			delay   = time.Millisecond
			queries = 4
		)
		got := overDelay(u, sample.Load{Kind: "query",
			Options: sample.QueryOptions{Queries: queries}}, delay)
		page := time.Duration(got.Latency.ValueAtQuantile(50))
		if least := 2 * queries * delay; page < least || page > 3*least {
			u.Errorf("a page of %d queries over %s each way takes %s", queries, delay, page)
		}
		q := time.Duration(got.Times[workload.TimeQuery].ValueAtQuantile(50))
		if math.Abs(float64(page)/float64(q)-queries) > queries/2 {
			u.Errorf("a page takes %s, a query %s", page, q)
		}
	})
}

// A stall that begins in the window is in a page and in a query, however long it goes on.
func TestQueryStalledAtTheEnd(t *testing.T) {
	inTime(t, func(u testing.TB) {
		const stall = 100 * time.Millisecond // longer than the window
		for _, queries := range []int{1, 20} {
			client := stallsAt(u, sample.Load{Kind: "query",
				Options: sample.QueryOptions{Queries: queries}}, windows(warmup, window),
				func(w Schedule) (from, until int64) {
					return w.To - int64(window/4), w.To + int64(stall)
				})
			if n := longer(client, stall); n != 1 {
				u.Errorf("pages of %d queries: %d took %s", queries, n, stall)
			}
			longest := time.Duration(client.Times[workload.TimeQuery].Max())
			if longest < stall {
				u.Errorf("pages of %d queries: the longest query took %s, one stalled for %s", queries,
					longest, stall)
			}
		}
	})
}
