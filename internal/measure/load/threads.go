package load

import (
	"errors"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Most threads have a connection of their own. In a load in both directions, the second half of the
// threads are twins: they send on the connections on which the first half receives. A stream
// parallel to a load has the last thread.

// threads returns the number of an end's threads for loads without loops.threads.
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

func (o Options) watched() bool {
	return o.Crowd || o.Threads() > workload.ManyThreads && workload.BulkOf(o.Load).Bytes == 0 &&
		!workload.Of(o.Load).UDP
}

func (t *thread) beside() bool { return t.rr.Beside && t.index == t.spec.Streams }

func (t *thread) main() bool { return t.twin == nil && !t.beside() }

func (c *threadGroup) mainThreads() (n int64) {
	for _, t := range c.threads {
		if t.main() {
			n++
		}
	}
	return n
}

var errNoTwin = errors.New("there is no connection to send on")

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

// matchThreads matters for loads with a parallel stream. It gives each connection to the threads
// with the same number at both ends, and so to the intended CPUs. Through a proxy, connections
// arrive in any order, so the client sends the number.
func (o Options) matchThreads(open func(*thread) error, server bool) func(*thread) error {
	if !workload.RROf(o.Load).Beside {
		return open
	}
	return func(t *thread) error {
		if err := open(t); err != nil {
			return err
		}
		if !server {
			return greet(t.fd, t.index)
		}
		index, err := greeted(t.fd)
		if err != nil {
			return err
		}
		if index < 0 || index >= threads(t.spec) {
			return fmt.Errorf("a client's connection has number %d of %d", index,
				threads(t.spec))
		}
		t.index = index
		return pin(o.cpu(index))
	}
}

func (o Options) together() error {
	bulk, rr := workload.BulkOf(o.Load), workload.RROf(o.Load)
	switch {
	case bulk.Bidir && bulk.Reverse:
		return errors.New("bulk cannot run both ways and from the server only")
	case o.Crowd && (bulk.Bidir || rr.Beside || bulk.Bytes > 0 || rr.Rate > 0):
		return errors.New(
			"several processes cannot use both directions, a parallel stream, a " +
				"number of bytes or a rate")
	case bulk.Bytes < 0 || rr.Rate < 0:
		return fmt.Errorf("%d bytes, %g requests per second: must not be negative", bulk.Bytes,
			rr.Rate)
	}
	return CanSend(bulk.Send)
}

func (t *thread) count(name string, n int64) {
	if t.counts == nil {
		t.counts = map[string]int64{}
	}
	t.counts[name] += n
}
