package load

import (
	"syscall"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// udp-rr exchanges requests and responses of one datagram each, and times each round trip. A
// response that does not arrive in time counts as lost and is not timed.
//
// The first byte of both is the request's number, which identifies late responses. A head begins
// with a higher byte.

// replyTime is the time, in ns, after which a trip counts as lost, in addition to four round trips.
const replyTime = 100e6

const rrNumbers = 128

func udpRRClient(t *thread) {
	var (
		request = t.buf[:t.sizes.Request]
		reply   = written(workload.MaxDatagram)
		limit   = int64(replyTime) + 4*t.udp.rtt
		counts  = map[string]int64{workload.CountLost: 0, workload.CountLate: 0,
			workload.CountBuffer: int64(t.udp.buffer)}
		took  int64
		timed bool
	)
	for id, over := byte(0), false; !over; id = (id + 1) % rrNumbers {
		request[0] = id
		sentAt := clock.Now()
		if _, e := send(t.fd, request); e != 0 {
			t.failed("send", e)
			return
		}
		t.sent += int64(len(request))
		if timed {
			_ = t.hist.RecordValue(took)
		}
		timed = false
		for {
			n, e := recv(t.fd, reply)
			now := clock.Now()
			if e == 0 && n == t.sizes.Reply && reply[0] == id {
				t.recvd += int64(n)
				t.trips++
				took = now - sentAt
				timed = t.timed(took)
				over = t.passed(now)
				break
			}
			if e != 0 && e != syscall.EAGAIN {
				t.failed("receive", e)
				return
			}
			if e == 0 && n == t.sizes.Reply && reply[0] < rrNumbers && t.inWindow() {
				counts[workload.CountLate]++
			}
			if over = t.passed(now); over {
				break
			}
			if now-sentAt > limit {
				if t.inWindow() {
					counts[workload.CountLost]++
				}
				break
			}
		}
	}
	if timed {
		_ = t.hist.RecordValue(took)
	}
	t.counts = counts
	s := &sender{t: t, f: t.udp}
	s.end(0, 0)
}

func udpRRServer(t *thread) {
	var (
		r       = &receiver{t: t, f: t.udp}
		request = written(workload.MaxDatagram)
		reply   = t.buf[:t.sizes.Reply]
	)
	for now := clock.Now(); r.ended == 0 && !r.over(now); {
		n, e := recv(t.fd, request)
		switch {
		case e == syscall.EAGAIN || e == syscall.ECONNREFUSED:
			now = clock.Now()
			r.cross(now)
			continue
		case e != 0:
			t.failed("receive", e)
			return
		}
		if h, ok := parseHead(request[:n], r.f.run); ok {
			r.answer(h, request[:n])
			continue
		}
		if n != t.sizes.Request || request[0] >= rrNumbers {
			continue // another visit's
		}
		t.recvd += int64(n)
		reply[0] = request[0]
		if n, e := send(t.fd, reply); e == 0 {
			t.sent += int64(n)
		}
		if t.trips++; t.trips%clockEvery == 0 {
			now = clock.Now()
			r.cross(now)
		}
	}
	r.cross(clock.Now())
	switch {
	case t.trips == 0:
		t.err = errNothing
	case r.ended == 0:
		t.err = errCutOff
	}
	t.counts = map[string]int64{workload.CountBuffer: int64(r.f.buffer)}
}
