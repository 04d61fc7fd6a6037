package load

import "github.com/bridgetoll/bridgetoll/internal/machine/clock"

// rr exchanges requests and responses on one connection, with TCP_NODELAY, and times each round
// trip.

func rrClient(t *thread) {
	var (
		request = t.sizes.Request
		reply   = t.sizes.Reply
		sentAt  = clock.Now()
		took    int64
		timed   bool
	)
	for {
		if !t.sendFull(request) {
			return
		}
		// The previous trip is recorded while this one is in flight.
		if timed {
			record(t.hist, took)
		}
		if !t.recvFull(reply) {
			return
		}
		now := clock.Now()
		t.trips++
		took = now - sentAt
		timed = t.timed(took)
		if t.passed(now) {
			break
		}
		if sentAt = now; t.rested() {
			sentAt = clock.Now()
		}
	}
	if timed {
		record(t.hist, took)
	}
	t.finish()
}

// clockEvery is the number of trips after which the server reads the clock. Reading it more often
// would add to the client's latency. The server's window may be a few trips off.
const clockEvery = 8

func rrServer(t *thread) {
	for t.recvFull(t.sizes.Request) {
		if !t.sendFull(t.sizes.Reply) {
			return
		}
		if t.trips++; t.watched || t.trips%clockEvery == 0 {
			t.passed(clock.Now())
		}
	}
	if t.err == nil {
		t.passed(clock.Now())
	}
}
