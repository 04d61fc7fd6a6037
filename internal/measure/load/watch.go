package load

import "github.com/bridgetoll/bridgetoll/internal/machine/clock"

// watch takes all threads' marks at the window's bounds, even while they are blocked. A thread
// without a connection gets none and fails.
func (c *threadGroup) watch(when Schedule) {
	if !c.threads[0].watched {
		return
	}
	for _, bound := range []int64{when.From, when.To} {
		clock.SleepUntil(bound)
		for _, t := range c.threads {
			tid := int(t.tid.Load())
			if tid == 0 {
				continue
			}
			t.mark(mark{at: clock.Now(), sent: t.shown.sent.Load(), recvd: t.shown.recvd.Load(),
				trips:     t.shown.trips.Load(),
				threadCPU: clock.CPU(threadClock(tid))})
		}
	}
}

// threadClock returns the ID of another thread's CPU-time clock, like pthread_getcpuclockid.
func threadClock(tid int) int32 {
	const perThreadSched = 6
	return int32(^tid<<3 | perThreadSched)
}

func (t *thread) flow(a, b mark) Flow {
	return Flow{
		Client:    t.client,
		Sent:      int64(b.tcp.Bytes_acked) - int64(a.tcp.Bytes_acked),
		Received:  b.recvd - a.recvd,
		Trips:     b.trips - a.trips,
		TotalRecv: t.recvd,
		Resent:    int64(tcpInfo(t.fd).Bytes_retrans),
	}
}
