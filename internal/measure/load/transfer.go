package load

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
)

func stream(t *thread, sends bool) {
	if t.bulk.Bidir {
		sends = t.twin != nil
	}
	switch {
	case !sends && t.bulk.Bytes > 0:
		fetch(t)
	case !sends && t.bulk.Bidir && !t.serves:
		sinkToMark(t)
	case !sends:
		sink(t)
	case t.bulk.Bytes > 0:
		deliver(t)
	case t.put != nil || t.bulk.Bidir:
		pour(t)
	default:
		source(t)
	}
	if sends && t.err == nil {
		t.acknowledged()
	}
}

func (t *thread) putter() putter {
	if t.put == nil {
		return &copying{t}
	}
	return t.put
}

// pour does what source does, for other methods of sending and for loads in both directions.
func pour(t *thread) {
	p := t.putter()
	for {
		n, e := p.put(t.write)
		if e != 0 {
			t.failed("send", e)
			return
		}
		t.sent += int64(n)
		if t.passed(clock.Now()) {
			break
		}
	}
	t.conclude()
}

// endMark ends the server's half of a stream in both directions. written never returns its bytes.
const endMark = 0x746f6c6c2d656e64

func (t *thread) conclude() {
	if !t.bulk.Bidir || !t.serves {
		t.finish()
		return
	}
	if t.bulk.Bytes > 0 {
		return
	}
	mark := binary.BigEndian.AppendUint64(nil, endMark)
	for len(mark) > 0 {
		n, e := send(t.fd, mark)
		if e != 0 {
			t.failed("send", e)
			return
		}
		t.sent += int64(n)
		mark = mark[n:]
	}
}

func sinkToMark(t *thread) {
	var last tail
	buf := t.buf[:t.write]
	for {
		n, e := recv(t.fd, buf)
		if e != 0 {
			t.failed("receive", e)
			return
		}
		now := clock.Now()
		t.recvd += int64(n)
		if n == 0 || last.after(buf[:n]) == endMark {
			t.passed(now)
			return
		}
		t.passed(now)
	}
}

// tail has the last 8 bytes of a stream as a big-endian number.
type tail uint64

func (t *tail) after(b []byte) uint64 {
	const size = 8
	if len(b) >= size {
		*t = tail(binary.BigEndian.Uint64(b[len(b)-size:]))
		return uint64(*t)
	}
	for _, c := range b {
		*t = *t<<8 | tail(c)
	}
	return uint64(*t)
}

func deliver(t *thread) {
	p := t.putter()
	t.edge(t.when.Start)
	for t.sent < t.bulk.Bytes {
		n, e := p.put(int(min(t.bulk.Bytes-t.sent, int64(t.write))))
		if e != 0 {
			t.failed("send", e)
			return
		}
		t.sent += int64(n)
	}
	t.edge(clock.Now())
	t.conclude()
	p.settle()
}

func fetch(t *thread) {
	buf := t.buf[:t.write]
	t.edge(t.when.Start)
	for t.recvd < t.bulk.Bytes {
		n, e := recv(t.fd, buf)
		if e != 0 {
			t.failed("receive", e)
			return
		}
		if n == 0 {
			t.err = fmt.Errorf("receive: the stream ended after %d of %d bytes", t.recvd,
				t.bulk.Bytes)
			return
		}
		t.recvd += int64(n)
	}
	t.edge(clock.Now())
}

// edge takes the mark at a bound that bytes define: the common start or the last byte. Each thread
// reads the process's clocks, because any thread may end last.
func (t *thread) edge(at int64) {
	t.first = true
	t.bounds++
	t.mark(mark{at: at, sent: t.sent, recvd: t.recvd, trips: t.trips,
		threadCPU: clock.CPU(unix.CLOCK_THREAD_CPUTIME_ID)})
}
