package load

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type reading struct {
	reader streamReader
	asked  int64
	token  int // tokens of the response received so far
	at     int64
	due    int64
	// over means that a token due after the window arrived, or that the request was sent after it.
	over bool
}

// latePatience is how long the load waits after its end for tokens that were due in the window.
// Otherwise long delays would be missing.
const latePatience = time.Second

func streamClient(t *thread) {
	s := t.stream
	period := period(t.spec)
	for t.err == nil {
		now := clock.Now()
		over := t.passed(now)
		until := t.next
		if over {
			until = t.next + int64(latePatience)
			if t.settled(period) || now >= until {
				break
			}
		} else {
			until = min(until, t.begin(now))
		}
		ready, slept, e := s.poll.wait(until)
		if e != 0 {
			t.failed("wait", e)
			return
		}
		// The events occurred after the last wait ended or, if this one slept, just now.
		since := s.polled
		s.polled = clock.Now()
		if slept {
			since = s.polled
		}
		for _, ev := range ready {
			if ev.Fd != timerID && t.err == nil {
				t.recvTokens(int(ev.Fd), since)
			}
		}
	}
	if t.err != nil {
		return
	}
	t.giveUp(clock.Now(), period)
	for _, fd := range t.fds {
		t.fd = fd
		t.finish()
	}
	t.fd = t.fds[0]
}

// begin starts the sessions that are due and returns when the next one is.
func (t *thread) begin(now int64) (next int64) {
	s := t.stream
	for ; s.begun < len(t.fds); s.begun++ {
		if at := t.when.Start + s.starts[s.begun]; at > now {
			return at
		}
		t.ask(s.begun)
	}
	return t.next
}

func (t *thread) ask(i int) {
	s := t.stream
	r := &s.reads[i]
	r.asked, r.token = clock.Now(), 0
	r.over = r.asked >= t.when.To
	n, e := send(t.fds[i], s.ask)
	switch {
	case e != 0:
		t.failed("send a request", e)
	case n < len(s.ask):
		t.err = errors.New("send a request: the socket's buffer is full")
	}
	t.sent += int64(max(0, n))
}

func (t *thread) recvTokens(i int, since int64) {
	n, e := recv(t.fds[i], t.buf)
	now := clock.Now()
	switch {
	case e == syscall.EAGAIN:
		return
	case e != 0:
		t.failed("receive", e)
		return
	case n == 0:
		t.err = errors.New("the server closed a connection")
		return
	}
	t.recvd += int64(n)
	r := &t.stream.reads[i]
	together, counted := 0, int64(0)
	for b := t.buf[:n]; len(b) > 0 && t.err == nil; {
		used, ev, err := r.reader.next(b)
		b = b[used:]
		if err != nil {
			t.err = fmt.Errorf("read a response: %w", err)
			return
		}
		switch ev {
		case aToken:
			together++
			counted += t.arrived(r, now, since)
		case endOfBody:
			t.ended(r, now)
			t.ask(i)
		}
	}
	if together > 1 {
		t.counts[workload.CountGlued] += counted
	}
}

// arrived records a token. It returns 1 if the token was due in the window, else 0.
func (t *thread) arrived(r *reading, now, since int64) int64 {
	s := t.stream
	first := r.token == 0
	gap := now - r.at
	r.token++
	r.at, r.due = now, r.reader.due
	if r.due >= t.when.To {
		r.over = true
	}
	if first && t.inWindow() {
		record(s.first, now-r.asked)
	}
	if r.due < t.when.From || r.due >= t.when.To {
		return 0
	}
	t.counts[workload.CountTokens]++
	record(t.hist, now-r.due)
	record(s.late, r.reader.sent-r.due)
	record(s.transit, now-r.reader.sent)
	record(s.wait, now-since)
	if !first {
		record(s.gap, gap)
	}
	return 1
}

func (t *thread) ended(r *reading, now int64) {
	t.trips++
	tokens := workload.StreamOf(t.spec).Tokens
	if r.token != tokens {
		t.err = fmt.Errorf("a response of %d tokens has %d", tokens, r.token)
	}
	if t.inWindow() {
		record(t.stream.overrun, now-r.asked-int64(float64(tokens)*period(t.spec)))
	}
}

// overdue returns the number of a session's tokens that were due before the window's end and have
// not arrived, and when the first of them was due (ns). If no token of the response has arrived,
// only the first one counts, as due since the request.
func (t *thread) overdue(r *reading, period float64) (n int, since int64) {
	switch {
	case r.over || r.asked == 0:
		return 0, 0
	case r.token == 0:
		return 1, r.asked
	}
	due, tokens := r.due+int64(period), workload.StreamOf(t.spec).Tokens
	for n = 0; r.token+n < tokens && r.due+int64(float64(n+1)*period) < t.when.To; n++ {
	}
	return n, due
}

func (t *thread) settled(period float64) bool {
	for i := range t.stream.reads {
		r := &t.stream.reads[i]
		if n, _ := t.overdue(r, period); n > 0 {
			return false
		}
	}
	return true
}

func (t *thread) giveUp(now int64, period float64) {
	for i := range t.stream.reads {
		n, due := t.overdue(&t.stream.reads[i], period)
		for k := range n {
			t.counts[workload.CountOverdue]++
			record(t.hist, now-due-int64(float64(k)*period))
		}
	}
}
