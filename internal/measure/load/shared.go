package load

import (
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Two ends can share an address: a baseline and its control are on one path, whose rules are for
// one port. They listen in turn, each until it has its connections.

const (
	portTime = 2 * time.Second
	portStep = 2 * time.Millisecond
)

func (o Options) patient(listen func() (int, error)) (int, error) {
	for until := time.Now().Add(portTime); ; time.Sleep(portStep) {
		fd, err := listen()
		if !o.Shared || !errors.Is(err, unix.EADDRINUSE) || time.Now().After(until) {
			return fd, err
		}
	}
}

// brieflyIf returns open or, if the address is shared, a function that also closes the listener
// once all connections are open.
func (s *Server) brieflyIf(o Options, open func(*thread) error) func(*thread) error {
	if !o.Shared {
		return open
	}
	var there atomic.Int32
	spec := withDefaults(o.Load)
	return func(t *thread) error {
		if err := open(t); err != nil {
			return err
		}
		if int(there.Add(1)) < spec.Streams || s.closed.Swap(true) {
			return nil
		}
		return unix.Close(s.listener)
	}
}
