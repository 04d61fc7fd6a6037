// Package fake is a backend without a kernel: its places run scripted workers in this process and
// its hops count what the script says. With a fake clock the engine runs without waiting and always
// gives the same numbers.
package fake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Builder is the fake backend. The zero value builds every path and moves DefaultRate over it.
type Builder struct {
	// Called is the name of the backend that it replaces; "": fake.
	Called string
	// Unsupported and Broken have the errors of Check and Build.
	Unsupported, Broken map[path.Spec]error
	// Rate returns the bytes or round trips per second in the n-th visit to a path (from 0); nil:
	// DefaultRate.
	Rate func(s path.Spec, load string, n int) float64
	// Die selects visits whose servers die during the load, Bypass those whose bytes no hop sees.
	Die, Bypass func(s path.Spec, n int) bool
	// Share returns the part of the rate for each process of a crowd's clients; nil: equal parts.
	Share func(s path.Spec, client, proc int) float64
	// Unreachable selects paths whose clients cannot connect.
	Unreachable func(s path.Spec) bool
	// Starve selects visits whose ends measure only a tenth of the window.
	Starve func(s path.Spec, n int) bool
	// Common means that all paths have one hop, which counts the bytes of all, and Foreign is what
	// other programs move there between two readings.
	Common  bool
	Foreign uint64
	// Slice changes an end's report of its k-th slice (the run-in is 0) in the n-th visit.
	Slice func(s path.Spec, role worker.Role, n, k int, x *load.SliceStats)
	// Program returns a keeper's reply in the n-th visit (from 0); nil: programs succeed and print
	// nothing.
	Program func(s path.Spec, o program.Request, n int) program.State
	// Headroom returns what a path has for connections that end; nil: paths cannot be drained.
	Headroom func(s path.Spec) sample.Headroom
	// Settings returns a path's settings after a number of visits; nil: none can be read.
	Settings func(s path.Spec, visits int) ([]path.Setting, error)

	// The fields that follow record what the engine did: the number of open paths, and the path and
	// the load of each visit.
	mu     sync.Mutex
	Open   int
	Visits []path.Spec
	Loads  []sample.Load
	// Keepers counts those started on each path, and Kept those that still run.
	Keepers map[path.Spec]int
	Kept    int
	common  sample.Counters
	// listens are the paths on which a server that shares its address waits for its client. If all
	// have one hop, they share the zero path's.
	listens map[path.Spec]bool
}

// DefaultRate is in bytes or round trips per second.
const DefaultRate = 1e6

var _ path.Builder = (*Builder)(nil)

// Name returns Called, or "fake".
func (b *Builder) Name() string { return cmp.Or(b.Called, "fake") }

// Check returns the error in Unsupported.
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
	if b.Common {
		p.Hops[0].Read = b.read
		path.Share(p, func(path.Hop) bool { return true })
	}
	if b.Headroom != nil {
		p.Drain = func() (sample.Headroom, error) { return b.Headroom(s), nil }
	}
	if b.Settings != nil {
		p.Inspect = func() ([]path.Setting, error) { return b.Settings(s, b.visited(s)) }
	}
	servers, clients := s.Count()
	for i := range servers {
		p.Servers = append(p.Servers, path.Server{Place: place{l, i}, Listen: addr})
	}
	for i := range clients {
		p.Clients = append(p.Clients, path.Client{
			Place: place{l, i}, Dial: addr, Server: i % servers})
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

type line struct {
	builder *Builder
	spec    path.Spec

	mu      sync.Mutex
	counted sample.Counters
	visits  map[int64]int // start of a visit's schedule -> its number
	served  int
}

func (b *Builder) read() (sample.Counters, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.common.ForwardBytes += b.Foreign
	return b.common, nil
}

func (l *line) read() (sample.Counters, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counted, nil
}

type place struct {
	*line
	number int
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
		Kill: func() error {
			return errors.Join(inR.CloseWithError(errors.New("killed")), outW.Close())
		}}, nil
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

func (p place) keep(in io.Reader, out io.Writer) error {
	defer p.builder.count(p.spec, -1)
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o program.Request
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

const programBytes = 4096

// follow answers a request to a keeper. Only a server's start has Ready, so it begins a visit.
func (p place) follow(o program.Request) (program.State, error) {
	b := p.builder
	p.mu.Lock()
	if o.Op == program.Start && o.Ready != "" {
		p.served++
	}
	n := p.served - 1
	if o.Op == program.Wait && (b.Bypass == nil || !b.Bypass(p.spec, n)) {
		p.counted = p.counted.Add(sample.Counters{
			ForwardBytes: programBytes, ForwardPackets: 4, BackwardBytes: programBytes,
			BackwardPackets: 4})
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

var errDied = errors.New("signal: killed")

func (p place) work(in io.Reader, out io.Writer) error {
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	var o worker.Request
	if err := dec.Decode(&o); err != nil {
		return nil // stopped before it began
	}
	ready, leave := p.open(o)
	defer leave()
	if err := enc.Encode(ready); err != nil || !ready.Ready {
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

// open returns an end's reply, and a function to call when the end is over. A shared address is in
// use until the client is connected.
func (p place) open(o worker.Request) (ready worker.Reply, leave func()) {
	b := p.builder
	b.mu.Lock()
	defer b.mu.Unlock()
	at := p.spec
	if b.Common {
		at = path.Spec{}
	}
	switch {
	case o.Role == worker.Client && b.Unreachable != nil && b.Unreachable(p.spec):
		return worker.Reply{Error: "connection timed out"}, func() {}
	case o.Role == worker.Client:
		delete(b.listens, at)
	case o.Shared && b.listens[at]:
		return worker.Reply{Error: "address already in use"}, func() {}
	case o.Shared:
		if b.listens == nil {
			b.listens = map[path.Spec]bool{}
		}
		b.listens[at] = true
		return worker.Reply{Ready: true}, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.listens, at)
		}
	}
	return worker.Reply{Ready: true}, func() {}
}

// visit returns a visit's number, from 0. Both ends of a visit have the same start.
func (l *line) visit(when load.Schedule) int {
	if _, ok := l.visits[when.Start]; !ok {
		l.visits[when.Start] = len(l.visits)
	}
	return l.visits[when.Start]
}

func (p place) count(role worker.Role, party sample.Party) {
	var c sample.Counters
	if role == worker.Server {
		c.ForwardBytes = uint64(party.TotalRecv)
	} else {
		c.BackwardBytes = uint64(party.TotalRecv)
	}
	p.counted = p.counted.Add(c)
	p.builder.mu.Lock()
	defer p.builder.mu.Unlock()
	p.builder.common = p.builder.common.Add(c)
}
