package load

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

// These loops of rr are for trips that may be few and long: at a slow rate, on one of many
// connections, or parallel to a stream. A receive timeout lets them pass the window's bounds on
// time while nothing arrives. Its timer makes each wait slower, so plain rr does not use it.

// timeouts is the number of times in a window that an idle thread reads the clock.
const timeouts = 50

func (t *thread) setTimeout() bool {
	every := unix.NsecToTimeval(max((t.when.To-t.when.From)/timeouts, int64(time.Millisecond)))
	if err := unix.SetsockoptTimeval(t.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &every); err != nil {
		t.err = fmt.Errorf("set SO_RCVTIMEO: %w", err)
		return false
	}
	return true
}

// timeoutClient times the trips that begin in the window, however late they end, so that a stall
// beyond the window counts.
func timeoutClient(t *thread) {
	if !t.setTimeout() {
		return
	}
	now := clock.Now()
	for {
		sentAt, counts := now, t.inWindow()
		if !t.sendFull(t.sizes.Request) || !t.recvTimeout(t.sizes.Reply) {
			return // the server ends first only if it fails
		}
		now = clock.Now()
		t.trips++
		if counts {
			t.timed(now - sentAt)
			record(t.hist, now-sentAt)
		}
		if t.passed(now) {
			break
		}
		if t.rested() {
			now = clock.Now()
		}
	}
	t.finish()
}

func timeoutServer(t *thread) {
	if !t.setTimeout() {
		return
	}
	for t.recvTimeout(t.sizes.Request) {
		if !t.sendFull(t.sizes.Reply) {
			return
		}
		t.trips++
		t.passed(clock.Now())
	}
	if t.err == nil {
		t.passed(clock.Now())
	}
}

// waits passes bounds while nothing arrives. Between slices an active thread sleeps only after its
// trip, whose time would otherwise contain the sleep: until then, waits ends a slice's measurement.
func (t *thread) waits(now int64) {
	s := t.slices
	switch {
	case s == nil || !s.active || s.over():
		t.passed(now)
	case s.phase == untilTo && now >= s.bound():
		t.crossSlice(s.bound()) // since then nothing has come
	}
}

// recvTimeout does what recvFull does, and calls waits whenever setTimeout's timeout is over.
func (t *thread) recvTimeout(n int) bool {
	for got := 0; got < n; {
		k, e := recv(t.fd, t.buf[got:n])
		switch {
		case e == syscall.EAGAIN:
			t.waits(clock.Now())
			continue
		case e != 0:
			t.failed("receive", e)
			return false
		case k == 0:
			return false
		}
		got += k
		t.recvd += int64(k)
	}
	return true
}
