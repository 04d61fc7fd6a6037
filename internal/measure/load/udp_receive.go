package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	// lastWord is how long, in ns, the server waits for the client's last message after the load's
	// end.
	lastWord = 2e9
	// straggle is how long, in ns, missing datagrams may still arrive, in addition to two round
	// trips.
	straggle = 20e6
)

type receiver struct {
	t       *thread
	f       *flow
	track   tracker
	total   uint64 // datagrams that arrived, without duplicates
	in      struct{ got, reordered, duplicates int64 }
	dropped int64 // dropped by the socket in the window

	// The current step of a search.
	step        byte
	steps       int64
	first, last int64 // ns

	ended    int64  // when the client announced the end, in ns; 0: not yet
	from, to uint64 // first number in the window, and first after it
	sent     uint64 // number of all datagrams sent
	rtt      int64
}

var (
	errNothing = errors.New("the client's greeting arrived, but none of its datagrams")
	errCutOff  = errors.New("the client's final message did not arrive")
)

func udpServer(t *thread) {
	r := &receiver{t: t, f: t.udp}
	m := t.udp.msgs
	for now := clock.Now(); !r.over(now); {
		n, e := m.receive(t.fd)
		now = clock.Now()
		switch e {
		case 0:
			for i := range n {
				r.take(m.bufs[i][:m.got[i]], now)
			}
		case syscall.EAGAIN, syscall.ECONNREFUSED: // nothing came, or the client is gone
		default:
			t.failed("receive", e)
			return
		}
		r.cross(now)
	}
	r.cross(clock.Now())
	switch {
	case r.total == 0:
		t.err = errNothing
	case r.ended == 0:
		t.err = errCutOff
	case r.to > r.from && r.in.got == 0:
		t.err = fmt.Errorf("all %d datagrams of the window were lost", r.to-r.from)
	}
	lost := max(0, int64(r.to-r.from)-r.in.got)
	t.counts = map[string]int64{workload.CountDatagrams: r.in.got, workload.CountLost: lost,
		workload.CountReordered:  r.in.reordered,
		workload.CountDuplicates: r.in.duplicates, workload.CountDropped: min(r.dropped, lost),
		workload.CountBuffer: int64(r.f.buffer)}
}

func (r *receiver) cross(now int64) {
	for t := r.t; ; {
		was := t.bounds
		t.passed(now)
		if t.bounds == was {
			return
		}
		switch t.bounds {
		case 1:
			r.dropped = -socketDrops(t.fd)
		case windowBounds:
			r.dropped += socketDrops(t.fd)
		}
	}
}

func (r *receiver) over(now int64) bool {
	if r.ended > 0 {
		return r.total >= r.sent || now > r.ended+straggle+2*r.rtt
	}
	return now > max(r.t.when.To, r.t.when.End)+lastWord
}

// take processes a datagram. With GRO, b has several datagrams of one size, and the last may be
// shorter.
func (r *receiver) take(b []byte, now int64) {
	o := workload.UDPOf(r.t.spec)
	for len(b) > 0 {
		one := b
		if o.GSO {
			one = b[:min(len(b), o.Size)]
		}
		b = b[len(one):]
		if h, ok := parseHead(one, r.f.run); ok {
			r.one(h, one, now)
		}
	}
}

func (r *receiver) one(h head, b []byte, now int64) {
	if h.kind != data {
		r.answer(h, b)
		return
	}
	if h.step != 0 {
		if h.step != r.step {
			r.step, r.steps, r.first = h.step, 0, now
		}
		r.steps++
		r.last = now
	}
	fresh, late := r.track.add(binary.BigEndian.Uint64(b[headBytes:]))
	if fresh {
		r.total++
		r.t.recvd += int64(len(b))
	}
	if h.part != 1 {
		return
	}
	switch {
	case !fresh:
		r.in.duplicates++
	case late:
		r.in.reordered++
		r.in.got++
	default:
		r.in.got++
	}
}

// answer replies to a control message, which the other end repeats if the reply is lost.
func (r *receiver) answer(h head, b []byte) {
	reply, numbers := head{run: r.f.run}, []int64(nil)
	switch h.kind {
	case hello:
		reply.kind = welcome
	case ask:
		reply.kind, numbers = report, []int64{number(b, 0), 0, 0, 0}
		if byte(number(b, 0)) == r.step {
			numbers = []int64{number(b, 0), r.steps, r.first, r.last}
		}
	case end:
		if r.ended == 0 {
			r.ended = clock.Now()
			r.from, r.to = uint64(number(b, 0)), uint64(number(b, 1))
			r.sent, r.rtt = uint64(number(b, 2)), number(b, 3)
		}
		reply.kind = bye
	default:
		return
	}
	times := 1
	if reply.kind == bye {
		times = byes
	}
	for range times {
		_, _ = send(r.t.fd, control(r.f.word, reply, numbers...))
	}
}

const byes = 3
