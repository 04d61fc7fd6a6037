package load

import (
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// query imitates a chatty application. A page is a number of small queries in sequence on one
// connection. The latencies are those of pages; queries are timed in addition. A page counts if it
// begins in the window or a slice, also if it ends later. The end of a load or of a slice cuts off
// a page, which counts if it has taken longer than a whole slice: a stall must not be missing.

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
		longest        = shortest(t.when) // of a page that may be left out
	)
	for n := 1; ; n++ {
		if !t.sendFull(request) {
			return
		}
		// The previous query is recorded while this one is in flight.
		if timed && queries != nil {
			record(queries, took)
		}
		if !t.recvFull(reply) {
			return
		}
		now := clock.Now()
		t.trips++
		timed, took = t.inWindow(), now-asked
		if n == page {
			if whole {
				t.timed(now - began)
				record(t.hist, now-began)
			}
			n = 0
		}
		over, rested := t.passed(now), t.rested()
		if (over || rested) && n > 0 && whole && now-began >= longest {
			record(t.hist, now-began)
		}
		if over {
			break
		}
		if asked = now; rested { // a new page begins
			asked, n = clock.Now(), 0
		}
		if n == 0 {
			began, whole = asked, t.inWindow()
		}
	}
	if timed && queries != nil {
		record(queries, took)
	}
	t.finish()
}

// shortest returns the length of the window or, if it is shorter, of the last slice, in ns.
func shortest(when Schedule) int64 {
	short := when.To - when.From
	if n := len(when.Slices); n > 0 {
		short = min(short, when.Slices[n-1].To-when.Slices[n-1].From)
	}
	return short
}
