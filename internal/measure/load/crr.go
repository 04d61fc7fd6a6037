package load

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// crr repeats connect, request, response and close, like netperf's TCP_CRR. The client closes
// first, so it keeps the TIME_WAIT state and its ephemeral port.

var failures = [...]string{workload.FailedTimeout, workload.FailedRefused, workload.FailedNoPort,
	workload.FailedConnect, workload.FailedExchange}

const (
	timedOut = iota
	refused
	noPort
	otherConnect
	exchangeFailed
)

func (t *thread) connections() int {
	if t.brief == nil {
		return max(1, len(t.fds))
	}
	return int(t.brief.opened)
}

// A connection without progress counts as failed after patience, which is a share of the window
// between these bounds, in ns. A lost SYN is sent again only after a second, which is longer than a
// short window.
const (
	leastPatience = int64(50 * time.Millisecond)
	mostPatience  = int64(time.Second)
	patienceShare = 4
)

func patience(s Schedule) int64 {
	return min(max((s.To-s.From)/patienceShare, leastPatience), mostPatience)
}

func crrClient(t *thread) {
	b := t.brief
	least := patience(t.when)
	for {
		if b.quota > 0 && b.opened+b.failed >= b.quota {
			t.cutShort()
			break
		}
		b.until(min(max(t.next-clock.Now(), least), int64(connectTimeout)))
		c := t.connectOnce()
		timed := t.inWindow()
		if c.failure >= 0 {
			b.failed++
			if timed {
				b.failures[c.failure]++
			}
			timed = false
		} else {
			t.trips++
		}
		if c.failure == noPort { // no port becomes free within a window
			t.cutShort()
			break
		}
		over := t.passed(c.end)
		if timed {
			record(t.hist, c.end-c.begin)
			record(t.times[workload.TimeConnect], c.connected-c.begin)
		}
		if over {
			break
		}
	}
	t.note()
	if !b.cut {
		t.stopServer()
	}
}

type once struct {
	begin, connected, end int64
	failure               int
}

func (t *thread) connectOnce() once {
	b := t.brief
	fd, e := b.socket()
	if e != 0 {
		return once{end: clock.Now(), failure: otherConnect}
	}
	begin := clock.Now()
	if e := b.connect(fd); e != 0 {
		closeRaw(fd)
		return once{end: clock.Now(), failure: connectFailure(e)}
	}
	connected := clock.Now()
	t.fd = fd
	ok := t.sendFull(t.sizes.Request) && t.recvInTime(t.sizes.Reply)
	closeRaw(fd)
	end := clock.Now()
	t.fd = -1
	if !ok {
		t.err = nil // the connection failed, not the load
		return once{end: end, failure: exchangeFailed}
	}
	b.opened++
	return once{begin, connected, end, -1}
}

func connectFailure(e syscall.Errno) int {
	switch e {
	case unix.EINPROGRESS, unix.EALREADY, unix.ETIMEDOUT: // the first two are SO_SNDTIMEO's
		return timedOut
	case unix.ECONNREFUSED:
		return refused
	case unix.EADDRNOTAVAIL:
		return noPort
	}
	return otherConnect
}

func (t *thread) cutShort() {
	t.brief.cut, t.brief.early = true, t.bounds < windowBounds
	now := clock.Now()
	for t.bounds < windowBounds {
		t.cross(now)
	}
}

func (t *thread) note() {
	t.counts = map[string]int64{workload.Failed: t.brief.failed}
	for i, name := range failures {
		t.counts[name] = t.brief.failures[i]
	}
	t.counts[workload.EndedEarly] = 0
	if t.brief.early {
		t.counts[workload.EndedEarly] = 1
	}
}

func (t *thread) stopServer() {
	b := t.brief
	b.until(leastPatience)
	fd, e := b.socket()
	if e != 0 {
		return
	}
	if b.connect(fd) == 0 {
		b.opened++
	}
	closeRaw(fd)
}

// crrServer serves connections. After the load's end it returns as soon as a connection brings no
// request (see stopServer) or no connection comes for the time of patience.
func crrServer(t *thread) {
	b := t.brief
	quiet := patience(t.when)
	limit := unix.NsecToTimeval(quiet)
	// The timeout limits accept(2). Accepted sockets inherit it, so that a vanished client does not
	// block the thread for longer.
	err := unix.SetsockoptTimeval(b.listener, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	if err != nil {
		t.err = fmt.Errorf("set SO_RCVTIMEO: %w", err)
		return
	}
	for {
		b.deadline = clock.Now() + quiet
		fd, e := b.accept()
		served := false
		switch e {
		case 0:
			b.deadline = clock.Now() + quiet
			served = t.serve(fd)
		case unix.EAGAIN, unix.ECONNABORTED:
		default:
			t.failed("accept", e)
			return
		}
		if t.passed(clock.Now()) && !served {
			return
		}
	}
}

// serve answers a connection's request. It returns false if no request came.
func (t *thread) serve(fd int) bool {
	t.fd = fd
	t.brief.opened++
	ok := t.recvInTime(t.sizes.Request) && t.sendFull(t.sizes.Reply)
	if ok {
		t.trips++
		_, _ = t.brief.recv(fd, t.buf) // wait until the client closes first
	}
	closeRaw(fd)
	t.fd, t.err = -1, nil // the client counts failed connections
	return ok
}

func (t *thread) recvInTime(n int) bool {
	for got := 0; got < n; {
		k, e := t.brief.recv(t.fd, t.buf[got:n])
		if e != 0 || k == 0 {
			return false
		}
		got += k
		t.recvd += int64(k)
	}
	return true
}
