package load

import "github.com/bridgetoll/bridgetoll/internal/machine/clock"

// bulk sends at full speed on each TCP connection: from the client, from the server (Reverse), or
// both ways (Bidir).

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

// sink receives until the other end shuts down its half. It does not shut down its own, because a
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
			t.passed(now) // a bound may have passed since the last bytes came
			break
		}
		t.recvd += int64(n)
		t.passed(now)
	}
}
