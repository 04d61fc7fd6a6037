package load

import "github.com/bridgetoll/bridgetoll/internal/machine/clock"

// bulk is one TCP stream for each connection, at full speed in one direction.

func bulkClient(t *thread) { stream(t, !t.bulk.Reverse) }

func bulkServer(t *thread) {
	t.serves = true
	stream(t, t.bulk.Reverse)
}

func source(t *thread) {
	buf := t.buf[:t.write]
	for {
		n, e := send(t.fd, buf)
		if e != 0 {
			t.failed("send", e)
			return
		}
		t.sent += int64(n)
		if t.passed(clock.Now()) {
			break
		}
	}
	t.finish()
}

// sink receives until the other end has finished. It does not shut down its own half, because a
// proxy would then close its sockets before their counters were read.
func sink(t *thread) {
	buf := t.buf[:t.write]
	for {
		n, e := recv(t.fd, buf)
		if e != 0 {
			t.failed("receive", e)
			return
		}
		now := clock.Now()
		if n == 0 {
			t.passed(now) // the last bytes may precede the bound
			break
		}
		t.recvd += int64(n)
		t.passed(now)
	}
}
