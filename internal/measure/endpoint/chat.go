package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bridgetoll/bridgetoll/internal/machine/gpu"
	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Chat visits the endpoints of a language model's server.
type Chat struct {
	Locate Locate // nil: unknown
	// Whole, NoStream and Beyond are as in Client.
	Whole, NoStream bool
	Beyond          func(context.Context) (Peer, error)

	names     []string
	endpoints map[string]*openai.Endpoint
	facts     map[string]sample.Path
	from      map[string]*vantage.Vantage
	dials     map[string]*dials
	servers   servers
	limit     time.Duration
	gpus      map[int]*gpu.Meter // by the server's PID
	watch     *observe.Watch     // nil: this process may not capture packets
	unwatched error              // why
}

const responseTimeouts = openai.WholeTimeouts

// newChat parses the URLs; it does not connect. beyond is as in Client.
func newChat(at []Address, o openai.Options,
	beyond func(context.Context) (Peer, error)) (*Chat, error) {
	c := &Chat{endpoints: map[string]*openai.Endpoint{}, facts: map[string]sample.Path{},
		from: map[string]*vantage.Vantage{}, dials: map[string]*dials{}, servers: servers{},
		gpus: map[int]*gpu.Meter{}, limit: responseTimeouts * o.Timeout, Beyond: beyond}
	if c.watch, c.unwatched = observe.New(); c.unwatched != nil && beyond != nil {
		c.watch = observe.NewBlind()
	}
	if c.watch != nil {
		c.watch.Several = openai.Several(o.Body)
	}
	for _, w := range at {
		if c.watch != nil {
			o.Mark = c.watch.Marker(w.Name)
		}
		c.from[w.Name], c.dials[w.Name] = w.place(), &dials{}
		o.Dial = c.dials[w.Name].counted(w.dialler())
		e, err := openai.New(w.URL, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.Name, err)
		}
		c.names, c.endpoints[w.Name] = append(c.names, w.Name), e
	}
	return c, nil
}

// Names returns the endpoints' names in order.
func (c *Chat) Names() []string { return c.names }

// Check requests a short response from each endpoint, of each kind that visits will request.
func (c *Chat) Check(ctx context.Context) error {
	if err := c.Close(); err != nil { // of an earlier check
		return err
	}
	if err := c.lookBeyond(ctx); err != nil {
		return err
	}
	for _, name := range c.names {
		e := c.endpoints[name]
		began := time.Now()
		f, unseen, err := c.follow(ctx, name, e)
		if err != nil {
			return fmt.Errorf("%s%w", name, err)
		}
		facts := map[string]string{"url": e.String(), "model": f.Model, "http": f.HTTP}
		for fact, value := range map[string]string{"server": f.Server, "tls": f.TLS,
			"from": elsewhere(c.from[name]), familyFact: family(f.Remote.String()),
			sample.FactUnanswered:   c.dials[name].unanswered(),
			sample.FactTokensUnseen: unseen,
			sample.FactRequest:      e.Changes(), sample.FactEncoding: f.Coding,
			sample.FactType: f.Type} {
			if value != "" {
				facts[fact] = value
			}
		}
		if f.Keeps {
			facts[sample.FactKept] = "yes"
		}
		if f.Via != "" {
			facts[sample.FactVia] = f.Via
		}
		c.servers.find(ctx, c.Locate, name, f.Remote.String(), c.from[name], facts)
		c.serveFar(name, unseen, facts)
		pid := c.servers[name].PID
		if _, tried := c.gpus[pid]; !tried && !c.NoStream {
			c.gpus[pid] = gpu.Open(ctx, pid)
		}
		c.facts[name] = sample.Path{Route: name, From: sample.FromHere, On: sample.OnEndpoint,
			Dial: f.Remote.String(), Hops: []string{},
			Built: time.Since(began).Seconds(), Facts: facts}
	}
	if c.watch != nil {
		if err := c.watch.Start(); err != nil {
			for _, p := range c.facts {
				p.Facts[sample.FactTokensUnseen] = err.Error()
			}
		}
	}
	return nil
}

// lookBeyond makes the watch look for servers on the other machine, too, if there is one.
func (c *Chat) lookBeyond(ctx context.Context) error {
	if c.Beyond == nil || c.watch == nil || c.NoStream {
		return nil
	}
	p, err := c.Beyond(ctx)
	if err != nil {
		return err
	}
	process, err := p.Start(path.Command{Args: []string{observe.Arg}})
	if err != nil {
		return err
	}
	c.watch.Beyond(p.Name(), process, p.Err, p.Denied)
	return nil
}

// follow probes an endpoint, and learns the way to its server. unseen is a clause on why that
// cannot be followed.
func (c *Chat) follow(ctx context.Context, name string, e *openai.Endpoint) (f openai.Facts,
	unseen string, err error) {
	probe := func() (openai.Facts, error) {
		f, err = c.probe(ctx, e)
		return f, err
	}
	why := c.unwatched
	if c.NoStream || c.watch == nil {
		_, err = probe()
	} else {
		why, err = c.watch.Follow(ctx, name, c.from[name].PID(), probe)
	}
	if c.NoStream || why == nil {
		return f, "", err
	}
	return f, whyUnseen(why), err
}

// serveFar notes whether the server of a route was found on the other machine, if there is one, and
// what can be read of it there. unseen is why its tokens are not seen.
func (c *Chat) serveFar(name, unseen string, facts map[string]string) {
	s, far := c.watch.FarServer(name)
	switch {
	case s.Process:
		delete(facts, sample.FactServerUnseen)
	case far:
		facts[sample.FactServerUnseen] = "toll found no process there that serves it"
	case c.Beyond != nil && unseen != "" && facts[sample.FactServerUnseen] != "":
		facts[sample.FactServerUnseen] = unseen
	}
}

// Close ends the captures of packets, and the readings of GPUs.
func (c *Chat) Close() error {
	for _, m := range c.gpus {
		m.Close()
	}
	clear(c.gpus)
	if c.watch == nil {
		return nil
	}
	return c.watch.Close()
}

// Paths describes the endpoints after Check.
func (c *Chat) Paths() []sample.Path { return paths(c.names, c.facts) }

type talk struct {
	mu         sync.Mutex
	first, gap *hdrhistogram.Histogram
	responses  []float64
	rates      []float64 // tokens per second of a response
	connects   []float64
	rtts       []float64
	counts     map[string]int64
	other      string // the first event that was no part of a response
	suspects   suspects
	timed      bool          // arrivals are noted
	arrivals   [][]time.Time // of each response's tokens
	// the waits in responses over new connections and over kept ones
	opened, kept waits
}

// waits are times in seconds until the first token, of the longest gap, and of whole responses.
type waits struct{ first, gap, whole []float64 }

// excess returns by how much the waits over kept connections exceed those over new ones; the
// longest such wait decides. ok is false without responses over both.
func (t *talk) excess() (seconds float64, ok bool) {
	for _, x := range [][2][]float64{{t.kept.first, t.opened.first}, {t.kept.gap, t.opened.gap},
		{t.kept.whole, t.opened.whole}} {
		if len(x[0]) == 0 || len(x[1]) == 0 {
			continue
		}
		seconds, ok = max(seconds, median(x[0])-median(x[1])), true
	}
	return seconds, ok
}

func (t *talk) waitsOf(r *openai.Response) *waits {
	if r.Connect > 0 {
		return &t.opened
	}
	return &t.kept
}

// Visit opens l.Streams sessions. Each sends its requests one after another.
func (c *Chat) Visit(ctx context.Context, cell sample.Cell, l sample.Load, v *sample.Visit) error {
	t := &talk{first: sample.NewHistogram(), gap: sample.NewHistogram(),
		counts: map[string]int64{"tokens": 0}}
	if l.Kind != workload.Batch {
		t.counts["glued"], t.counts["stalls"], t.counts[workload.CountEvents] = 0, 0, 0
		t.counts[workload.CountOtherEvents] = 0
	}
	began, before := time.Now(), strainsOf(c.from[cell.Route], c.servers[cell.Route])
	together := c.servers.watch(os.Getpid(), cell.Route)
	watched, err := c.watched(ctx, cell.Route, l)
	if err != nil {
		return err
	}
	busy := c.gpus[c.servers[cell.Route].PID]
	busy.Begin()
	far, _ := c.watch.FarServer(cell.Route)
	t.timed = busy != nil || far.GPU
	c.dials[cell.Route].begin()
	defer func() {
		v.Together = together()
		if g := busy.End(t.spans()); g != nil {
			v.GPU = g
		}
		c.dials[cell.Route].note(v)
	}()
	err = atOnce(ctx, max(1, l.Streams), func(ctx context.Context, _ int) error {
		return c.converse(ctx, cell.Route, l, t, watched)
	})
	if err != nil {
		return err
	}
	v.Client = sample.Party{Window: time.Since(began).Seconds(), Trips: int64(len(t.responses)),
		Connections: len(t.connects),
		Counts:      t.counts, TCP: sample.TCPInfo{RTT: median(t.rtts)}}
	v.Values = map[string]float64{"response": median(t.responses)}
	v.OtherEvent = t.other
	t.suspects.note(v)
	before.note(v)
	if len(t.connects) > 0 {
		v.Values["connect"] = median(t.connects)
	}
	if x, ok := t.excess(); ok {
		v.Values[workload.ValueKeptExcess] = x
	}
	if len(t.rates) > 0 {
		v.Values["token_rate"] = median(t.rates)
	}
	if watched != nil {
		if err := c.noteWatched(ctx, watched, t, l, v); err != nil {
			return err
		}
	}
	v.Times, err = encoded(map[string]*hdrhistogram.Histogram{"first_token": t.first, "gap": t.gap})
	return err
}

// converse makes the requests of one session, and notes the responses.
func (c *Chat) converse(ctx context.Context, route string, l sample.Load, t *talk,
	watched *observe.Visit) error {
	o := workload.ChatOf(l)
	s := c.endpoints[route].Open()
	defer s.Close()
	for range max(1, o.Requests) {
		ask, note := c.ask, func(r *openai.Response) { t.note(r, o.Stall) }
		if l.Kind == workload.Batch {
			ask, note = c.askWhole, t.noteWhole
		}
		r, err := ask(ctx, s)
		if err != nil {
			return err
		}
		note(r)
		if watched != nil && l.Kind != workload.Batch {
			watched.Add(r)
		}
	}
	return nil
}

// watched starts to watch the tokens of a visit, and what slows down a server on the other machine.
// It returns nil if nothing can be seen.
func (c *Chat) watched(ctx context.Context, route string, l sample.Load) (*observe.Visit, error) {
	_, far := c.watch.FarServer(route)
	if c.watch == nil || l.Kind == workload.Batch && !far {
		return nil, nil
	}
	return c.watch.Begin(ctx, route)
}

// noteWatched ends watching, and notes what was seen.
func (c *Chat) noteWatched(ctx context.Context, watched *observe.Visit, t *talk, l sample.Load,
	v *sample.Visit) error {
	e, err := watched.End(ctx)
	if err != nil {
		return err
	}
	if l.Kind != workload.Batch {
		v.Evidence = e
	}
	if counts := watched.Counts(); counts != nil {
		v.Server.Counts = counts
	}
	whole, slow := t.spans()
	v.GPU = watched.GPU(ctx, whole, slow)
	return nil
}

// probe has the time limit of a visit's response, because a server may ignore the small number of
// tokens that is requested. Its errors begin with what follows an endpoint's name.
func (c *Chat) probe(ctx context.Context, e *openai.Endpoint) (f openai.Facts, err error) {
	if !c.NoStream {
		ctx, cancel := c.bounded(ctx)
		defer cancel()
		if f, err = e.Probe(ctx); err != nil {
			return f, fmt.Errorf(": %w", err)
		}
	}
	if c.Whole || c.NoStream {
		ctx, cancel := c.bounded(ctx)
		defer cancel()
		w, err := e.ProbeWhole(ctx)
		if err != nil {
			return f, fmt.Errorf(", a response in one piece: %w", err)
		}
		if c.NoStream {
			f = w
		}
	}
	return f, nil
}

func (c *Chat) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.limit,
		fmt.Errorf("the response did not end within %s", c.limit))
}

func (c *Chat) ask(ctx context.Context, s *openai.Session) (*openai.Response, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	r, err := s.Ask(ctx)
	if err == nil && len(r.Arrivals) == 0 {
		err = errors.New("the response has no token")
	}
	return r, err
}

func (c *Chat) askWhole(ctx context.Context, s *openai.Session) (*openai.Response, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	return s.AskWhole(ctx)
}

func (t *talk) noteWhole(r *openai.Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.waitsOf(r)
	w.whole = append(w.whole, r.End.Seconds())
	t.common(r, r.Tokens)
}

func (t *talk) note(r *openai.Response, stall float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first, n := r.Arrivals[0], len(r.Arrivals)
	record(t.first, first)
	longest := time.Duration(0)
	for i := 1; i < n; i++ {
		gap := r.Arrivals[i] - r.Arrivals[i-1]
		longest = max(longest, gap)
		record(t.gap, gap)
		if gap.Seconds() > stall {
			t.counts["stalls"]++
		}
	}
	w := t.waitsOf(r)
	w.first, w.gap = append(w.first, first.Seconds()), append(w.gap, longest.Seconds())
	if t.timed {
		came := make([]time.Time, n)
		for i, a := range r.Arrivals {
			came[i] = r.Began.Add(a)
		}
		t.arrivals = append(t.arrivals, came)
	}
	t.counts[workload.CountEvents] += int64(n)
	t.counts["glued"] += int64(r.Glued)
	t.counts[workload.CountOtherEvents] += int64(r.Others)
	t.other = cmp.Or(t.other, r.Other)
	t.common(r, cmp.Or(r.Tokens, n))
}

// spans returns the times from each response's first token to its last, and the slow gaps in them.
func (t *talk) spans() (whole, slow []gpu.Span) {
	pace := time.Duration(min(t.gap.Mean(), float64(t.gap.ValueAtQuantile(50))))
	for _, came := range t.arrivals {
		whole = append(whole, gpu.Span{From: came[0], To: came[len(came)-1]})
		for i, at := range came[1:] {
			if tokens.Slow(at.Sub(came[i]), pace) {
				slow = append(slow, gpu.Span{From: came[i], To: at})
			}
		}
	}
	return whole, slow
}

// common notes a response with a number of tokens, 0 if that is unknown.
func (t *talk) common(r *openai.Response, tokens int) {
	t.counts["tokens"] += int64(tokens)
	if tokens > 0 && r.End > 0 {
		t.rates = append(t.rates, float64(tokens)/r.End.Seconds())
	}
	t.responses = append(t.responses, r.End.Seconds())
	t.suspects.sent += int64(r.Lost.Sent)
	t.suspects.resent += int64(r.Lost.Resent)
	t.suspects.outOfOrder += int64(r.Lost.OutOfOrder)
	if r.LookUp > 0 {
		t.suspects.lookUps = append(t.suspects.lookUps, r.LookUp.Seconds())
	}
	if r.Connect > 0 {
		t.connects = append(t.connects, r.Connect.Seconds())
	}
	if r.RTT > 0 {
		t.rtts = append(t.rtts, r.RTT.Seconds())
	}
}
