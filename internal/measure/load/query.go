package load

import (
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// query imitates a chatty application. A page is a number of small queries in sequence on one
// connection. The latencies are those of pages; queries are timed in addition.

func queryClient(t *thread) {
	var (
		request, reply = t.sizes.Request, t.sizes.Reply
		page           = workload.QueryOf(t.spec).Queries
		queries        = t.times[workload.TimeQuery]
		began          = clock.Now()
		asked          = began
		whole          bool
		took           int64
		timed          bool
	)
	for n := 1; ; n++ {
		if !t.sendFull(request) {
			return
		}
		// The previous query is recorded while this one is in flight.
		if timed && queries != nil {
			_ = queries.RecordValue(took)
		}
		if !t.recvFull(reply) {
			return
		}
		now := clock.Now()
		t.trips++
		timed, took = t.inWindow(), now-asked
		if n == page {
			if whole && t.timed(now-began) {
				_ = t.hist.RecordValue(now - began)
			}
			n = 0
		}
		if t.passed(now) {
			break
		}
		if asked = now; t.rested() { // a new page begins
			asked, n = clock.Now(), 0
		}
		if n == 0 {
			began, whole = asked, t.inWindow()
		}
	}
	t.finish()
}
