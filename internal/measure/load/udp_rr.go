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
		last    = max(t.when.To, t.when.End) + lastWord/2
		// These are variables, because counting in a map costs time.
		answered, lost, late, took int64
		timed                      bool
	)
	for id, over := byte(0), false; !over; id = (id + 1) % rrNumbers {
		request[0] = id
		// A loss is noticed when slice and window are over, so the request's own time decides.
		sentAt, counts := clock.Now(), t.inWindow()
		if _, e := send(t.fd, request); e != 0 {
			t.failed("send", e)
			return
		}
		t.sent += int64(len(request))
		if timed {
			record(t.hist, took)
		}
		now, others, e := t.response(reply, id, min(sentAt+limit, last))
		if e != 0 && e != syscall.EAGAIN {
			t.failed("receive", e)
			return
		}
		if timed = false; e == 0 {
			t.recvd += int64(t.sizes.Reply)
			t.trips++
			took = now - sentAt
			timed = t.timed(took)
		}
		if counts {
			late += others
			if e == 0 {
				answered++
			} else if now >= sentAt+limit {
				lost++
			}
		}
		over = t.passed(now)
	}
	if timed {
		record(t.hist, took)
	}
	t.counts = map[string]int64{workload.CountAnswered: answered, workload.CountLost: lost,
		workload.CountLate: late, workload.CountBuffer: int64(t.udp.buffer)}
	s := &sender{t: t, f: t.udp}
	s.end(0, 0)
}

// response waits for the response with that number. It returns when it came, in ns, and the number
// of late ones that came before, or EAGAIN if it did not come before until.
func (t *thread) response(b []byte, id byte, until int64) (now, late int64, e syscall.Errno) {
	for {
		n, e := recv(t.fd, b)
		now = clock.Now()
		switch whole := e == 0 && n == t.sizes.Reply; {
		case whole && b[0] == id, e != 0 && e != syscall.EAGAIN:
			return now, late, e
		case whole && b[0] < rrNumbers:
			late++
		}
		if now >= until {
			return now, late, syscall.EAGAIN
		}
		t.waits(now)
	}
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
