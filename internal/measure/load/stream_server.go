package load

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type writing struct {
	ask    requestReader
	start  int64
	token  int
	tokens int // tokens of the response; 0: none in progress
	rest   []byte
	ended  bool
}

// eachTurn is the number of tokens that the loop sends before it looks for requests.
const eachTurn = 16

func streamServer(t *thread) {
	s := t.stream
	period := period(t.spec)
	for s.alive > 0 && t.err == nil {
		now := clock.Now()
		t.passed(now)
		i, due, ok := s.due.next()
		for n := 0; ok && due <= now && n < eachTurn && t.err == nil; n++ {
			t.sendToken(i, due, period)
			now = clock.Now()
			i, due, ok = s.due.next()
		}
		until := due
		if t.bounds < windowBounds {
			until = min(until, t.next)
		}
		ready, _, e := s.poll.wait(until)
		if e != 0 {
			t.failed("wait", e)
		}
		for _, ev := range ready {
			switch {
			case ev.Fd == timerID:
			case ev.Events&unix.EPOLLOUT != 0:
				t.sendRest(int(ev.Fd))
			default:
				t.recvRequest(int(ev.Fd))
			}
		}
	}
	if t.err == nil {
		t.passed(clock.Now())
	}
}

func (t *thread) sendToken(i int, due int64, period float64) {
	s := t.stream
	w := &s.writes[i]
	switch {
	case w.ended:
		s.due.drop()
		return
	case w.token == w.tokens:
		s.due.drop()
		w.tokens = 0
		if t.reply(i, finishFrame) {
			t.reply(i, doneFrame)
		} else {
			w.rest = append(w.rest, doneFrame...)
		}
		return
	}
	f := s.frames[w.token%len(s.frames)]
	stamp(f.b[f.due:], due)
	stamp(f.b[f.sent:], clock.Now())
	w.token++
	s.due.later(w.start + int64(float64(w.token)*period))
	t.reply(i, f.b)
}

// reply sends b. It returns false if the socket's buffer is full; sendRest then sends the rest, and
// the session's next tokens after it.
func (t *thread) reply(i int, b []byte) bool {
	w := &t.stream.writes[i]
	if len(w.rest) > 0 {
		w.rest = append(w.rest, b...)
		if t.inWindow() {
			t.counts[workload.CountBlocked]++
		}
		return false
	}
	n, e := send(t.fds[i], b)
	if e == syscall.EAGAIN {
		n, e = 0, 0
	}
	if e != 0 {
		t.failed("send", e)
		return true
	}
	t.sent += int64(n)
	if n == len(b) {
		return true
	}
	w.rest = append(w.rest, b[n:]...)
	if t.inWindow() {
		t.counts[workload.CountBlocked]++
	}
	if err := t.stream.poll.change(t.fds[i], i, unix.EPOLLIN|unix.EPOLLOUT); err != nil {
		t.err = err
	}
	return false
}

func (t *thread) sendRest(i int) {
	w := &t.stream.writes[i]
	if len(w.rest) > 0 {
		n, e := send(t.fds[i], w.rest)
		if e == syscall.EAGAIN {
			return
		}
		if e != 0 {
			t.failed("send", e)
			return
		}
		t.sent += int64(n)
		w.rest = append(w.rest[:0], w.rest[n:]...)
	}
	if len(w.rest) == 0 {
		if err := t.stream.poll.change(t.fds[i], i, unix.EPOLLIN); err != nil {
			t.err = err
		}
	}
}

// recvRequest reads from a session. A complete request makes the response's first token due at
// once.
func (t *thread) recvRequest(i int) {
	s := t.stream
	w := &s.writes[i]
	n, e := recv(t.fds[i], t.buf)
	switch {
	case e == syscall.EAGAIN:
		return
	case e != 0:
		t.failed("receive", e)
		return
	case n == 0:
		w.ended = true
		s.alive--
		// The socket stays readable, so epoll would report it again and again.
		if err := s.poll.forget(t.fds[i]); err != nil {
			t.err = err
		}
		return
	}
	t.recvd += int64(n)
	used, whole, err := w.ask.next(t.buf[:n])
	switch {
	case err == nil && !whole:
		return
	case err == nil && (used < n || w.tokens > 0):
		err = errors.New("the client sent a request before it had the response")
	}
	if err != nil {
		t.err = fmt.Errorf("read a request: %w", err)
		return
	}
	w.start, w.token, w.tokens = clock.Now(), 0, w.ask.tokens
	t.trips++
	t.reply(i, responseHead)
	s.due.add(i, w.start)
}
