package observe

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Attach divides the times of the requests that come to a server of this machine for a time, or
// until ctx is done, at the server's own device. dial opens a connection from this network namespace
// that carries nothing, by which the server is found, and returns its local port.
func Attach(ctx context.Context, dial func() (local uint16, err error),
	during time.Duration) (out *sample.Served, err error) {
	w, err := New()
	if err != nil {
		return nil, err
	}
	defer func() {
		if errClose := w.Close(); err == nil {
			err = errClose
		}
	}()
	r, err := w.connected(ctx, os.Getpid(), dial)
	if err != nil {
		return nil, err
	}
	r.hops, r.dialed = r.hops[len(r.hops)-1:], nil // whoever accepts the connection
	w.describe(r)
	w.routes[""], w.serving = r, true
	if err := w.Start(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.realtime = clock.Real()
	w.mu.Unlock()
	began := time.Now()
	all, err := w.collect(ctx, r.hops[0], during)
	if err != nil {
		return nil, err
	}
	out = &sample.Served{Server: r.hops[0].about, Elapsed: time.Since(began).Seconds()}
	w.mu.Lock()
	defer w.mu.Unlock()
	if out.Lost, err = w.lost(); err != nil {
		return nil, err
	}
	all.Note(out, began)
	return out, nil
}

// collect takes the requests at a hop as they are answered.
func (w *Watch) collect(ctx context.Context, h hop, during time.Duration) (*tokens.Requests, error) {
	var all tokens.Requests
	over := time.After(during)
	for last := false; ; {
		select {
		case <-ctx.Done():
			last = true
		case <-over:
			last = true
		case <-time.After(time.Second):
		}
		if last {
			time.Sleep(2 * capture.Retire) // until blocks that are not full are passed on
		}
		w.mu.Lock()
		err := w.drain()
		all.Take(w.log, tokens.Place{Space: h.space, Port: h.port}, last)
		w.mu.Unlock()
		if last || err != nil {
			return &all, err
		}
	}
}

// connected finds the hops of a connection that dial opens.
func (w *Watch) connected(ctx context.Context, from int, dial func() (uint16, error)) (*route, error) {
	local := uint16(0)
	seen, _, unseen, err := w.look(ctx, nil, nil, func() (err error) {
		local, err = dial()
		return err
	})
	if err := errors.Join(unseen, err); err != nil {
		return nil, err
	}
	home, err := w.home(from)
	if err != nil {
		return nil, err
	}
	return opened(seen, home, local)
}
