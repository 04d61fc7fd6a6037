package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Way follows a client's requests over a route, whose hops it knows.
type Way struct {
	w *Watch
	r *route
}

// Find finds the hops of the connections that dial opens, as Exchanges does. The caller closes the
// Way.
func Find(ctx context.Context, from int, dial func() (local uint16, err error)) (*Way, error) {
	w, err := New()
	if err != nil {
		return nil, err
	}
	w.anyBytes, w.dials = true, true
	if from == 0 {
		from = os.Getpid()
	}
	r, err := w.chase(ctx, from, dial)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	w.routes[""] = r
	return &Way{w, r}, nil
}

// Close forgets the route.
func (y *Way) Close() error { return y.w.Close() }

// Hops returns the server and the relays in front of it.
func (y *Way) Hops() (out []sample.EvidenceHop) {
	for _, h := range y.r.hops {
		out = append(out, h.about)
	}
	return out
}

// Follow captures while do makes requests, with copies of each capture, at least 1, and divides the
// exchanges that do returns.
func (y *Way) Follow(copies int, do func() ([]tokens.Exchange, error)) (t *sample.Trace, err error) {
	w := y.w
	w.copies = copies - 1
	if err := w.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("capture packets: %w", err), w.halt())
	}
	defer func() { err = errors.Join(err, w.halt()) }()
	w.mu.Lock()
	w.realtime = clock.Real()
	w.mu.Unlock()
	began := time.Now()
	all, err := do()
	if err != nil {
		return nil, err
	}
	time.Sleep(2 * capture.Retire) // until blocks that are not full are passed on
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.drain(); err != nil {
		return nil, err
	}
	if clockMoved(began) != 0 {
		return nil, errors.New("the clock was set while packets were captured")
	}
	lost, err := w.lost()
	if err != nil {
		return nil, err
	}
	t = w.log.Follow(y.r.client, y.chain(), all)
	t.Lost = lost
	return t, nil
}

// chain returns the hops, with names that differ.
func (y *Way) chain() (out []tokens.Hop) {
	times := map[string]int{}
	for i, h := range y.r.hops {
		name := cmp.Or(h.about.Process, "relay")
		if i == 0 {
			name = cmp.Or(h.about.Process, "server")
		}
		if times[name]++; times[name] > 1 {
			name = fmt.Sprintf("%s %d", name, times[name])
		}
		out = append(out, tokens.Hop{Place: tokens.Place{Space: h.space, Port: h.port}, Name: name,
			From: h.from})
	}
	return out
}
