package load

// query is a chatty application: a page is so many small queries, one after
// another on one connection, the next as soon as the last reply is there. Pages
// are timed as latencies, queries beside them.

// queryTimes is what query times besides its pages.
const queryTimes = "query"

func queryClient(t *thread) {
	var (
		request, reply = t.spec.Request, t.spec.Reply
		queries        = t.times[queryTimes]
		began          = Now() // the page
		asked          = began // the query
		whole          bool    // the page began in the window
		took           int64
		timed          bool
	)
	for n := 1; ; n++ {
		if !t.sendFull(request) {
			return
		}
		// The last query is recorded while this one is under way.
		if timed && queries != nil {
			_ = queries.RecordValue(took) // over a minute: the window is long over
		}
		if !t.recvFull(reply) {
			return // the server ends first only if it fails
		}
		now := Now()
		t.trips++
		timed, took = t.inWindow(), now-asked
		if n == t.spec.Queries {
			if whole && t.inWindow() {
				_ = t.hist.RecordValue(now - began)
			}
			n = 0
		}
		if t.passed(now) {
			break
		}
		asked = now
		if n == 0 {
			began, whole = now, t.inWindow()
		}
	}
	t.finish()
}
