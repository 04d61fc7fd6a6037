// Package fake is a backend without a kernel: its places run scripted workers
// in this process and its hops count what the script says. With a fake clock
// the engine runs end to end in no time and always gives the same numbers.
package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/load"
	"github.com/bridgetoll/bridgetoll/internal/meter"
	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/program"
	"github.com/bridgetoll/bridgetoll/internal/sample"
	"github.com/bridgetoll/bridgetoll/internal/worker"
)

// Builder is the fake backend. The zero value builds every path and moves
// DefaultRate over it.
type Builder struct {
	// Unsupported and Broken say which paths Check and Build refuse.
	Unsupported, Broken map[path.Spec]error
	// Rate is the bytes a second of bulk, or the round trips a second of rr,
	// in the n-th visit to a path (from 0); nil means DefaultRate always.
	Rate func(s path.Spec, load string, n int) float64
	// Die says which visits' servers die in mid-load, Bypass which visits'
	// bytes no hop sees; nil means none.
	Die, Bypass func(s path.Spec, n int) bool
	// Share is what part of the rate each process of a crowd's clients gets; nil
	// means the same for all.
	Share func(s path.Spec, client, proc int) float64
	// Starve says which visits' ends measure a tenth of the window only.
	Starve func(s path.Spec, n int) bool
	// Program is what the keeper of a path's programs says to an order of the n-th
	// visit to the path (from 0), and thereby what they do; nil means that they do
	// well and print nothing. Die is asked about their clients, and Bypass too.
	Program func(s path.Spec, o program.Order, n int) program.State
	// Room is what a path has for connections that end, and is asked each time
	// that one is drained; nil means that paths cannot be.
	Room func(s path.Spec) sample.Room
	// Settings are what a path's settings are after so many visits to it; nil means
	// that the backend cannot tell.
	Settings func(s path.Spec, visits int) ([]path.Setting, error)

	mu     sync.Mutex // guards following
	Open   int        // paths that were built and not closed
	Visits []path.Spec
	Loads  []sample.Load // of Visits
	// Keepers counts those that were started on each path, and Kept those that
	// still run.
	Keepers map[path.Spec]int
	Kept    int
}

// DefaultRate is bytes or round trips a second.
const DefaultRate = 1e6

var _ path.Builder = (*Builder)(nil)

// Name is "fake".
func (b *Builder) Name() string { return "fake" }

// Check refuses what is in Unsupported.
func (b *Builder) Check(_ context.Context, s path.Spec) error { return b.Unsupported[s] }

// Build builds a path with one hop.
func (b *Builder) Build(_ context.Context, s path.Spec) (*path.Path, error) {
	if err := b.Broken[s]; err != nil {
		return nil, err
	}
	l := &line{builder: b, spec: s, visits: map[int64]int{}}
	addr := netip.MustParseAddrPort("192.0.2.1:5201")
	p := &path.Path{Spec: s,
		Hops: []path.Hop{{Kind: mode.HopVeth, Name: "fake0", Where: "nowhere", Read: l.read}}}
	if b.Room != nil {
		p.Drain = func() (sample.Room, error) { return b.Room(s), nil }
	}
	if b.Settings != nil {
		p.Inspect = func() ([]path.Setting, error) { return b.Settings(s, b.visited(s)) }
	}
	servers, clients := s.Count()
	for i := range servers {
		p.Servers = append(p.Servers, path.Server{Place: place{l, i}, Listen: addr})
	}
	for i := range clients {
		p.Clients = append(p.Clients, path.Client{Place: place{l, i}, Dial: addr, Server: i % servers})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Open++
	p.Undo.Push("close", func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.Open--
		return nil
	})
	return p, nil
}

// visited is how often the path was visited.
func (b *Builder) visited(s path.Spec) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range b.Visits {
		if v == s {
			n++
		}
	}
	return n
}

// line is the path's state.
type line struct {
	builder *Builder
	spec    path.Spec

	mu      sync.Mutex // guards following
	counted sample.Counters
	visits  map[int64]int // start of a visit's schedule -> its number
	served  int           // servers of programs that were started
}

func (l *line) read() (sample.Counters, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counted, nil
}

type place struct {
	*line
	number int // of the server or client
}

func (place) Name() string { return "nowhere" }

// Start runs a scripted worker or keeper.
func (p place) Start(c path.Command) (*path.Process, error) {
	work := p.work
	if c.Args[0] == program.Arg {
		work = p.keep
		p.builder.count(p.spec, 1)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := work(inR, outW)
		_ = errors.Join(inR.Close(), outW.Close())
		done <- err
	}()
	return &path.Process{PID: 1, In: inW, Out: outR,
		Wait: func() error { return <-done },
		Kill: func() error { return errors.Join(inR.CloseWithError(errors.New("killed")), outW.Close()) }}, nil
}

func (b *Builder) count(s path.Spec, keepers int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Kept += keepers; keepers > 0 {
		if b.Keepers == nil {
			b.Keepers = map[path.Spec]int{}
		}
		b.Keepers[s]++
	}
}

// keep answers orders until the input ends.
func (p place) keep(in io.Reader, out io.Writer) error {
	defer p.builder.count(p.spec, -1)
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o program.Order
		if err := dec.Decode(&o); err != nil {
			return nil
		}
		st, err := p.follow(o)
		if err != nil {
			return err
		}
		if err := enc.Encode(st); err != nil {
			return nil
		}
	}
}

// programBytes are what the hop counts each way of a client's visit.
const programBytes = 4096

// follow does what an order says. Only a server is waited for until it is ready.
func (p place) follow(o program.Order) (program.State, error) {
	b := p.builder
	p.mu.Lock()
	if o.Op == program.Start && o.Ready != "" {
		p.served++
	}
	n := p.served - 1
	if o.Op == program.Wait && (b.Bypass == nil || !b.Bypass(p.spec, n)) {
		p.counted = p.counted.Add(sample.Counters{ForwardBytes: programBytes, ForwardPackets: 4, BackwardBytes: programBytes, BackwardPackets: 4})
	}
	p.mu.Unlock()
	if o.Op == program.Wait && b.Die != nil && b.Die(p.spec, n) {
		return program.State{}, errDied
	}
	if b.Program == nil {
		return program.State{}, nil
	}
	return b.Program(p.spec, o, n), nil
}

// errDied is how a scripted death looks to the one who waits for it.
var errDied = errors.New("signal: killed")

func (p place) work(in io.Reader, out io.Writer) error {
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	var o worker.Order
	if err := dec.Decode(&o); err != nil {
		return nil // stopped before it began
	}
	if err := enc.Encode(worker.Reply{Ready: true}); err != nil {
		return nil
	}
	var when load.Schedule
	if err := dec.Decode(&when); err != nil {
		return nil
	}
	reply, err := p.move(o, when)
	if err != nil {
		return err
	}
	if err := enc.Encode(reply); err != nil {
		return nil
	}
	_, _ = dec.Token()
	return nil
}

// move makes the numbers of one end.
func (p place) move(o worker.Order, when load.Schedule) (worker.Reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, n := p.builder, p.visit(when)
	if o.Role == worker.Client {
		b.mu.Lock()
		b.Visits = append(b.Visits, p.spec)
		b.Loads = append(b.Loads, o.Load)
		b.mu.Unlock()
	}
	if b.Die != nil && b.Die(p.spec, n) {
		return worker.Reply{}, errDied
	}
	rate := DefaultRate
	if b.Rate != nil {
		rate = b.Rate(p.spec, o.Load.Kind, n)
	}
	seconds := float64(when.To-when.From) / 1e9
	if b.Starve != nil && b.Starve(p.spec, n) {
		seconds /= 10
	}
	if o.Crowd {
		return p.moveCrowd(o, rate, seconds, n), nil
	}
	amount := int64(rate * seconds)
	if n := o.Load.Bytes; n > 0 { // they end it, not the clock
		amount = n * int64(max(1, o.Load.Streams))
		seconds = float64(amount) / rate
	}
	party := sample.Party{Window: seconds, Connections: 1, CPU: seconds / 2, BusiestCPU: 0.5, CPUs: o.CPUs}
	reply := worker.Reply{Done: &party}
	switch o.Load.Kind {
	case "rr", "crr", "udp-rr":
		if o.Load.Kind == "crr" {
			if o.Budget > 0 && amount > int64(o.Budget) { // the client's window ends there
				party.Window *= float64(o.Budget) / float64(amount)
				amount = int64(o.Budget)
				party.Counts = map[string]int64{load.EndedEarly: 1}
			}
			party.Connections = int(amount)
		}
		party.Trips, party.Sent, party.Received = amount, amount, amount
		party.TotalSent, party.TotalRecv = amount, amount
		if o.Role == worker.Client {
			h := sample.NewHistogram()
			if err := h.RecordValues(int64(1e9/rate), amount); err != nil {
				return reply, fmt.Errorf("record: %w", err)
			}
			e, err := sample.Encode(h)
			if err != nil {
				return reply, err
			}
			reply.Latency = e
		}
	default:
		if o.Load.Bidir {
			party.Sent, party.TotalSent, party.Received, party.TotalRecv = amount, amount, amount, amount
			break
		}
		if o.Role == worker.Client {
			party.Sent, party.TotalSent = amount, amount
		} else {
			party.Received, party.TotalRecv = amount, amount
		}
	}
	if b.Bypass == nil || !b.Bypass(p.spec, n) {
		p.count(o.Role, party)
	}
	return reply, nil
}

// moveCrowd makes the numbers of one end of many, whose rates make up the whole.
// What each client process gets is its server's word.
func (p place) moveCrowd(o worker.Order, rate, seconds float64, n int) worker.Reply {
	b := p.builder
	servers, clients := p.spec.Count()
	party := sample.Party{Window: seconds, Connections: 1, CPU: seconds / 2, BusiestCPU: 0.5, RSS: 6 << 20}
	reply := worker.Reply{Done: &party}
	if o.Role == worker.Client {
		return reply
	}
	mine := (clients - p.number + servers - 1) / servers
	procs := o.Load.Streams / mine
	party.Connections = o.Load.Streams
	for c := p.number; c < clients; c += servers {
		for q := range procs {
			share := 1 / float64(clients*procs)
			if b.Share != nil {
				share = b.Share(p.spec, c, q)
			}
			moved := int64(rate * seconds * share)
			f := load.Flow{Client: c*procs + q, Received: moved, TotalRecv: moved, Trips: moved}
			party.Received += moved
			party.TotalRecv += moved
			party.Trips += moved
			reply.Flows = append(reply.Flows, f)
		}
	}
	if b.Bypass == nil || !b.Bypass(p.spec, n) {
		p.counted.ForwardBytes += uint64(party.TotalRecv)
	}
	return reply
}

// visit numbers a path's visits; both ends of one have the same start.
func (l *line) visit(when load.Schedule) int {
	if _, ok := l.visits[when.Start]; !ok {
		l.visits[when.Start] = len(l.visits)
	}
	return l.visits[when.Start]
}

// count is what the hop sees of one end's receiving.
func (p place) count(role worker.Role, party sample.Party) {
	if role == worker.Server {
		p.counted.ForwardBytes += uint64(party.TotalRecv)
	} else {
		p.counted.BackwardBytes += uint64(party.TotalRecv)
	}
}

// Clock is a clock that only moves when somebody sleeps.
type Clock struct {
	mu  sync.Mutex // guards following
	now int64
	// OnSleep is called with the time before each sleep; may be nil.
	OnSleep func(now int64)
}

// Now is the clock in ns.
func (c *Clock) Now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep moves the clock to t.
func (c *Clock) Sleep(ctx context.Context, t int64) error {
	if c.OnSleep != nil {
		c.OnSleep(c.Now())
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = max(c.now, t)
	return nil
}

// Meter reads two CPUs, each half busy by the clock.
type Meter struct{ Clock *Clock }

// Read reads the clock as CPU time.
func (m Meter) Read(pids ...int) (meter.Reading, error) {
	s := float64(m.Clock.Now()) / 1e9
	cpu := sample.CPU{User: s / 4, System: s / 4, Idle: s / 2}
	return meter.Reading{At: time.Unix(0, m.Clock.Now()), CPUs: []sample.CPU{cpu, cpu}, Procs: make([]float64, len(pids))}, nil
}
