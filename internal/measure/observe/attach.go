package observe

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// mostFollowed is the number of requests after which watching a server ends.
const mostFollowed = 1_000_000

// mostRecorded bounds the packets, writes, reads and runs that are recorded a second, on average,
// while a server is watched. Each takes about 2 µs of CPU time until it is paired, so that all of
// them take 2 % of a CPU.
const mostRecorded = 10_000

// Attach divides the times of the requests that come to a server of this machine for a time, or
// until ctx is done, at the server's own device. If they are many, it follows them in spells, with
// rests in which nothing is recorded. dial opens a connection from this network namespace that
// carries nothing, by which the server is found, and returns its local port.
func Attach(ctx context.Context, dial func() (local uint16, err error),
	during time.Duration) (out *sample.Served, err error) {
	s, err := attach(ctx, os.Getpid(), dial)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.watch(ctx, during)
}

// serving watches a server in spells.
type serving struct {
	*Watch
	at     hop
	ports  published
	since  time.Time // the first packet
	most   float64   // records a second
	kept   int       // requests after which the watching is over
	enough func()    // ends it
	rate   float64   // records a second of the last spell, since something came
	// last is what the server had sent at first or when the last rest ended, began and ended when the
	// last spell did; nil: unknown.
	last, began, ended *sends
	// crowded means that its connections are too many to read what each was sent.
	crowded  bool
	all      tokens.Requests
	estimate estimate
	served   sample.Served
}

// estimate is of the number of requests, as far as each spell is like the rest after it.
type estimate struct {
	until time.Time
	rate  float64 // requests a second of the last spell
	sum   float64
}

// add adds the time until now, with a spell that has requests in the seconds that were followed.
func (e *estimate) add(now time.Time, requests int, followed float64) {
	if followed > 0 {
		e.rate = float64(requests) / followed
	}
	e.sum += e.rate * now.Sub(e.until).Seconds()
	e.until = now
}

// attach begins to capture the packets of a server to which dial connects from the network
// namespace of a process.
func attach(ctx context.Context, from int, dial func() (uint16, error)) (*serving, error) {
	w, err := New()
	if err != nil {
		return nil, err
	}
	r, err := w.connected(ctx, from, dial)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w.serve(ctx, r)
}

// serve begins to capture the packets of whoever receives what a client sends over a route.
func (w *Watch) serve(ctx context.Context, r *route) (s *serving, err error) {
	ports := published{dialled: r.client.Dialled}
	r.hops, r.client.Dialled = r.hops[len(r.hops)-1:], nil
	w.describe(r)
	w.routes[""], w.serving = r, true
	s = &serving{Watch: w, at: r.hops[0], ports: ports, most: mostRecorded,
		kept: mostFollowed, served: sample.Served{Server: r.hops[0].about, UDP: w.udp}}
	if err := s.lookForPorts(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if s.served.Steered, err = s.steered(ctx.Done()); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	s.since = time.Now()
	w.realtime = clock.Real() // for what is read before follow is called
	if err := w.Start(); err != nil {
		return nil, err
	}
	return s, nil
}

// watch follows the requests for a time, or until ctx is done.
func (s *serving) watch(ctx context.Context, during time.Duration) (out *sample.Served, err error) {
	ctx, s.enough = context.WithTimeout(ctx, during)
	defer s.enough()
	began, queue := time.Now(), s.accepting(s.at)
	s.estimate.until = began
	if err := s.spells(ctx); err != nil {
		return nil, err
	}
	s.served.Elapsed = s.estimate.until.Sub(began).Seconds()
	if s.writes != nil && s.writes.Reads() {
		s.served.Dialled = s.dialled
	}
	s.served.Successor = s.successor(s.at)
	s.served.Frames = s.frames()
	s.served.Queue = queueSince(s.at, queue, s.accepting(s.at))
	s.all.Note(&s.served, s.since)
	if n := s.all.Count(); s.served.Spells > 0 && n > 0 { // of those that could be divided
		s.served.Estimated = s.estimate.sum * float64(s.served.Requests) / float64(n)
	}
	if s.served.Requests == 0 && !s.udp {
		n, err := s.open()
		s.served.Open = &n
		return &s.served, err
	}
	return &s.served, nil
}

// open returns the number of the server's connections.
func (s *serving) open() (n int, err error) {
	err = s.ofServer(func(sock.Socket) { n++ })
	return n, err
}

// ofServer calls do for each of the server's TCP connections.
func (s *serving) ofServer(do func(sock.Socket)) error {
	return s.spaces[s.at.space].Visit(func() error {
		all, err := sock.Table()
		for _, x := range all {
			if x.Proto == "tcp" && !x.Listening && x.Local.Port() == s.at.to.Port() &&
				(s.at.takes == nil || s.at.takes(x.Local.Addr().Unmap())) {
				do(x)
			}
		}
		return err
	})
}

// spells follows the requests until ctx is done.
func (s *serving) spells(ctx context.Context) error {
	s.last = s.sends()
	for {
		requests, followed := s.all.Count(), s.served.Followed
		err := s.followAndRest(ctx)
		now := time.Now()
		if followed = s.served.Followed - followed; followed > 0 {
			s.all.Weigh(max(1, now.Sub(s.estimate.until).Seconds()/followed))
		}
		s.estimate.add(now, s.all.Count()-requests, followed)
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// followAndRest follows the requests in a spell, and rests until the next one.
func (s *serving) followAndRest(ctx context.Context) error {
	rest, err := s.follow(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	rests := s.again(s.began)
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(rest):
	}
	if s.last = s.sends(); rest > 0 { // or the server was asked less than before
		s.compare(rests)
	}
	return errors.Join(s.lookForPorts(), s.resume())
}

// follow follows the requests until ctx is done, or until more was recorded than may be. It returns
// for how long to rest then.
func (s *serving) follow(ctx context.Context) (rest time.Duration, err error) {
	s.mu.Lock()
	s.realtime = clock.Real()
	before := s.recorded
	s.mu.Unlock()
	began := time.Now()
	s.began = s.again(s.last)
	for length := s.spell(); ; length = time.Second {
		last, many := time.Now(), s.rate > s.most
		came, n := last, before
		if many {
			s.leave(ctx)
		} else if n, came, err = s.recordFor(ctx, length, before); err != nil {
			return 0, err
		}
		length = time.Since(last)
		if over := ctx.Err() != nil; over || many || s.restAfter(length, n-before) > 0 {
			s.ended = s.again(s.began)
			n, err = s.end(began, over && s.served.Spells == 0)
			s.rate = float64(n-before) / (length - came.Sub(last)).Seconds()
			return s.restAfter(length, n-before), err
		}
		if before, err = s.take(0); err != nil {
			return 0, err
		}
		if err := s.lookForPorts(); err != nil {
			return 0, err
		}
	}
}

// end ends a spell; all means that it was the only one. It returns the number of records so far.
func (s *serving) end(began time.Time, all bool) (recorded int, err error) {
	ended := time.Now()
	if err := s.pause(); err != nil {
		return 0, err
	}
	time.Sleep(2 * capture.Retire) // until blocks that are not full are passed on
	if !all {                      // what came late in the spell might not be answered in it
		s.served.Spells++
		ended = ended.Add(-min(s.spell(), ended.Sub(began)) / 2)
	}
	s.served.Followed += ended.Sub(began).Seconds()
	if recorded, err = s.take(ended.UnixNano()); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lost, err := s.lost(nil)
	s.served.Lost += lost
	s.newLog()
	return recorded, err
}

// leave waits for a spell, or until ctx is done, of which there will be as many records as may be in
// a quarter of a second if they come as in the last one. It leaves them in the ring: with few CPUs,
// reading them takes one from those who are followed.
func (s *serving) leave(ctx context.Context) {
	enough := time.Duration(s.most / quarters / s.rate * float64(time.Second))
	select {
	case <-ctx.Done():
	case <-time.After(max(s.spell(), enough)):
	}
}

const quarters = 4

// recordFor calls record for a time, or until ctx is done. It also returns a spell after something
// came, if there are as many records behind those before as may be in a quarter of a second: requests
// that begin to come would be followed for too long, and spells are compared with the rests after
// them, for which they must be many. came is when the first was looked for, or was there.
func (s *serving) recordFor(ctx context.Context, length time.Duration, before int) (recorded int,
	came time.Time, err error) {
	const part = 40 * time.Millisecond
	came = time.Now()
	for end := came.Add(length); ; {
		select {
		case <-ctx.Done():
		case <-time.After(min(part, time.Until(end))):
		}
		looked := time.Now()
		recorded, err = s.record()
		now := time.Now()
		switch {
		case err != nil || ctx.Err() != nil || !now.Before(end):
			return recorded, came, err
		case recorded == before:
			came = looked
		case float64(recorded-before) < s.most/quarters:
		case s.all.Mean() == 0: // how long requests take is not known
			if recorded, err = s.take(0); err != nil {
				return recorded, came, err
			}
		case now.Sub(came) >= s.spell():
			return recorded, came, nil
		}
	}
}

// record reads what was recorded, for take. It returns the number of records so far.
func (s *serving) record() (recorded int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.drain()
	return s.recorded, err
}

// take adds what the log has of requests (see tokens.Requests.Take). It returns the number of
// records so far.
func (s *serving) take(before int64) (recorded int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.drain(); err != nil {
		return 0, err
	}
	if clockMoved(s.realtime) != 0 { // packets have CLOCK_REALTIME's times, and writes the other's
		s.served.ClockSet++
		s.realtime = clock.Real()
		s.newLog()
		return s.recorded, nil
	}
	if s.all.Take(s.log, s.at.place(), before); s.all.Count() >= s.kept {
		s.enough()
	}
	return s.recorded, nil
}

// spell returns the length of a spell: much longer than a request.
func (s *serving) spell() time.Duration {
	const least, most, times = 40 * time.Millisecond, 2 * time.Second, 40
	return min(max(least, times*s.all.Mean()), most)
}

// restAfter returns the time to rest after recording n packets and writes in a time, or 0.
func (s *serving) restAfter(took time.Duration, n int) time.Duration {
	return max(0, time.Duration(float64(n)/s.most*float64(time.Second))-took)
}

// pause ends both at once. Binding the captures anew takes some milliseconds, in which writes would
// be slowed for nothing.
func (w *Watch) pause() error {
	errs := []error{each(w.rings, (*capture.Ring).Arm)}
	if w.writes != nil {
		errs = append(errs, w.writes.Pause())
	}
	return errors.Join(append(errs, each(w.rings, (*capture.Ring).Pause))...)
}

// resume begins with the writes, so that each captured reply has its own.
func (w *Watch) resume() error {
	errs := []error{each(w.rings, (*capture.Ring).Arm)}
	if w.writes != nil {
		errs = append(errs, w.writes.Resume())
	}
	return errors.Join(append(errs, each(w.rings, (*capture.Ring).Resume))...)
}

// each waits for all captures together.
func each(rings []*ring, do func(*capture.Ring) error) error {
	return atOnce(len(rings), func(i int) error { return do(rings[i].Ring) })
}

// connected finds the hops of a connection that dial opens.
func (w *Watch) connected(ctx context.Context, from int,
	dial func() (uint16, error)) (*route, error) {
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
