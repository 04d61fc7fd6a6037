package load

import (
	"errors"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Most threads have a connection of their own. For a load in both directions the second half of
// them are twins, which send on the connections on which the first half receives; for a load with a
// stream beside it the last one has that stream.

// threads returns the number of threads of an end in which each has a connection of its own.
func threads(s sample.Load) int {
	n := max(1, s.Streams)
	if workload.BulkOf(s).Bidir {
		n *= 2
	}
	if workload.RROf(s).Beside {
		n++
	}
	return n
}

// ManyThreads is the number of an end's threads beyond which they may starve one another. Then a
// watcher takes their counts, as a crowd's: a starved thread reaches the window's bounds late or
// never.
const ManyThreads = 16

// watched reports whether a watcher takes the end's counts.
func (o Options) watched() bool {
	return o.Crowd || o.Threads() > ManyThreads && workload.BulkOf(o.Load).Bytes == 0 && !workload.Of(o.Load).UDP
}

// beside reports whether the thread has the stream that runs beside the load.
func (t *thread) beside() bool { return t.rr.Beside && t.seat == t.spec.Streams }

// main reports whether the thread's connection is the load's own, and what it receives is counted
// on it.
func (t *thread) main() bool { return t.twin == nil && !t.beside() }

// mains returns the number of such threads.
func (c *crew) mains() (n int64) {
	for _, t := range c.threads {
		if t.main() {
			n++
		}
	}
	return n
}

var errNoTwin = errors.New("there is no connection to send on")

// attach gives the thread its connection: one that open makes, or its twin's.
func (t *thread) attach(open func(*thread) error) error {
	if t.twin == nil {
		defer close(t.attached)
		if err := open(t); err != nil {
			return err
		}
		return t.prepare()
	}
	<-t.twin.attached
	if t.twin.fd < 0 {
		return errNoTwin
	}
	t.fd = t.twin.fd
	return t.prepare()
}

// seated has the client send on each connection which of its threads has it, and the server give
// that connection to the thread in the same position, on the intended CPU: through a proxy
// connections arrive in any order.
func (o Options) seated(open func(*thread) error, server bool) func(*thread) error {
	if !workload.RROf(o.Load).Beside {
		return open
	}
	return func(t *thread) error {
		if err := open(t); err != nil {
			return err
		}
		if !server {
			return greet(t.fd, t.seat)
		}
		seat, err := greeted(t.fd)
		if err != nil {
			return err
		}
		if seat < 0 || seat >= threads(t.spec) {
			return fmt.Errorf("a client's connection says that it is number %d of %d", seat, threads(t.spec))
		}
		t.seat = seat
		return pin(o.cpu(seat))
	}
}

// together returns an error for options that exclude each other.
func (o Options) together() error {
	bulk, rr := workload.BulkOf(o.Load), workload.RROf(o.Load)
	switch {
	case bulk.Bidir && bulk.Reverse:
		return errors.New("both ways and from the server only")
	case o.Crowd && (bulk.Bidir || rr.Beside || bulk.Bytes > 0 || rr.Rate > 0):
		return errors.New("both ways, a stream beside, a number of bytes, or a rate: not in a crowd")
	case bulk.Bytes < 0 || rr.Rate < 0:
		return fmt.Errorf("%d bytes, %g requests per second: must not be negative", bulk.Bytes, rr.Rate)
	}
	return CanSend(bulk.Send)
}

// count adds to a count of this workload alone.
func (t *thread) count(name string, n int64) {
	if t.counts == nil {
		t.counts = map[string]int64{}
	}
	t.counts[name] += n
}
