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
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Way follows a client's requests over a route, whose hops it knows.
type Way struct {
	w *Watch
	r *route
	// Replies tells how the requests of the last capture were answered, of a client over UDP of which
	// only the packets are known.
	Replies tokens.Replies
	// Slots is not 0 for a client of which only the packets are known: its exchanges are those that
	// its device saw, in this many slots.
	Slots int
	// Frames and Steered are those of the exchanges for which Settle was called.
	Frames  *sample.Frames
	Steered []sample.Steered

	accepting []accepting // by hop
}

// Find finds the hops of the connections that dial opens, as Exchanges does. The caller closes the
// Way.
func Find(ctx context.Context, from int, dial func() (local uint16, err error)) (*Way, error) {
	w, err := New()
	if err != nil {
		return nil, err
	}
	w.anyBytes, w.dials = true, true
	from = cmp.Or(from, os.Getpid())
	r, err := w.chase(ctx, from, dial)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	w.routes[""] = r
	return &Way{w: w, r: r}, nil
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
	var stopped []sample.Stopped
	if y.accepting == nil {
		y.queues()
	}
	err = y.capture(copies, func() ([]tokens.Exchange, error) {
		stops := y.stops()
		all, err := do()
		stopped = stops()
		return all, err
	}, func(all []tokens.Exchange) error {
		lost, err := y.w.lost(nil)
		t = y.follow(y.r.hops, all)
		t.Lost, t.Stopped, t.Queues = lost, stopped, y.queues()
		return err
	})
	return t, err
}

// stops returns a function that returns the processes that a CPU limit stopped since.
func (y *Way) stops() func() []sample.Stopped {
	began := time.Now()
	var all []strain
	for _, h := range y.r.hops {
		all = append(all, strainOf(h))
	}
	return func() (out []sample.Stopped) {
		took := time.Since(began).Seconds()
		for i, h := range chain(y.r.hops) {
			if x := min(all[i].stopped(), took); x > 0 { // the kernel adds up what each CPU was denied
				out = append(out, sample.Stopped{Process: h.Name, For: x, Of: took})
			}
		}
		return out
	}
}

func (y *Way) follow(hops []hop, all []tokens.Exchange) *sample.Trace {
	switch {
	case y.w.udp:
		return y.w.log.FollowUDP(y.r.client.Space, chain(hops), all, y.Slots > 0)
	case y.Slots > 0:
		return y.w.log.FollowAsked(y.r.client.Space, chain(hops), all)
	}
	return y.w.log.Follow(y.r.client.Space, chain(hops), all)
}

// Ask returns the exchanges of a client that do runs, as its device sees them. Nothing else is
// captured.
func (y *Way) Ask(do func() error) (all []tokens.Exchange, err error) {
	y.w.routes[""] = &route{client: y.r.client}
	defer func() { y.w.routes[""] = y.r }()
	err = y.capture(1, func() ([]tokens.Exchange, error) { return nil, do() },
		func(asked []tokens.Exchange) error {
			all = asked
			return nil
		})
	return all, err
}

// Settle leaves out hops that are not on the way of the exchanges that do returns. It returns the
// share of the exchanges that are followed then.
func (y *Way) Settle(do func() ([]tokens.Exchange, error)) (share float64, err error) {
	err = y.capture(1, func() (all []tokens.Exchange, err error) {
		y.Steered, err = y.steered(func() error {
			all, err = do()
			return err
		})
		return all, err
	}, func(all []tokens.Exchange) error {
		y.r.hops, share = settle(y.r.hops, func(hops []hop) (followed, n int) {
			return y.follow(hops, all).Followed, len(all)
		})
		return nil
	})
	y.Frames = y.frames()
	return share, err
}

// capture captures while do makes requests, and calls then with the exchanges.
func (y *Way) capture(copies int, do func() ([]tokens.Exchange, error),
	then func([]tokens.Exchange) error) (err error) {
	w := y.w
	w.copies = copies - 1
	if err := w.start(); err != nil {
		return errors.Join(fmt.Errorf("capture packets: %w", err), w.halt())
	}
	defer func() { err = errors.Join(err, w.halt()) }()
	w.mu.Lock()
	w.realtime = clock.Real()
	w.mu.Unlock()
	all, err := do()
	if err != nil {
		return err
	}
	time.Sleep(2 * capture.Retire) // until blocks that are not full are passed on
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.drain(); err != nil {
		return err
	}
	if clockMoved(w.realtime) != 0 {
		return errors.New("the clock was set while packets were captured")
	}
	if y.Slots > 0 {
		if all, err = y.asked(); err != nil {
			return err
		}
	}
	return then(all)
}

// streamsError is the refusal of a client of HTTP/2.
type streamsError struct{}

func (streamsError) Error() string {
	return "the client speaks HTTP/2 without TLS, whose frames need not be of requests and replies"
}

func (streamsError) Hint() string {
	return "watch the server while its clients run, which tells requests apart by their streams: " +
		remedy.AsRoot("toll trace --attach PORT")
}

// asked returns the exchanges of a client of which only the packets are known.
func (y *Way) asked() (all []tokens.Exchange, err error) {
	if y.w.udp {
		all, y.Replies = y.w.log.AskedUDP(y.r.client, y.Slots)
		if n := y.Replies.Unanswered; len(all) == 0 && n > 0 {
			return nil, fmt.Errorf("the client's %d datagrams there had no reply", n)
		}
		if len(all) == 0 && y.Replies.TwoWay > 0 {
			return nil, errors.New("the client's datagrams there are of QUIC or WireGuard, in which both " +
				"sides send what answers nothing")
		}
		if len(all) == 0 {
			return nil, errSilent
		}
		return all, nil
	}
	if y.w.log.Streams(y.r.client) {
		return nil, streamsError{}
	}
	if all = y.w.log.Asked(y.r.client, y.Slots); len(all) == 0 {
		return nil, errors.New("the client opened no TCP connection there that carried a request and " +
			"its reply")
	}
	return all, nil
}

// chain returns the hops, with names that differ.
func chain(hops []hop) (out []tokens.Hop) {
	times := map[string]int{}
	for i, h := range hops {
		name := cmp.Or(h.about.Process, "relay")
		if i == 0 {
			name = cmp.Or(h.about.Process, "server")
		}
		if times[name]++; times[name] > 1 {
			name = fmt.Sprintf("%s %d", name, times[name])
		}
		out = append(out, tokens.Hop{Place: h.place(), Name: name, From: h.from})
	}
	return out
}
