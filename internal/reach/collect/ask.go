package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Network is this machine's network, or the error why it could not be read. It is zero if this
// process is not root.
type Network struct {
	machine *replica.Machine
	err     error
	// rest completes the facts that Read returned with the network; see readFacts.
	rest func()
	// ahead is a process for the copy; nil: this process is not root.
	ahead *replica.Ahead
}

// Close ends what Read began, unless Ask or Try was called.
func (n Network) Close() error { return n.ahead.Close() }

// Read reads the facts about this machine and, as root, at the same time its network. What proxies
// use is measured until Ask or Try has returned, of which the caller calls one, or Close. Read
// returns an error only if it cannot read the sockets.
func Read(ctx context.Context) (*ports.Facts, Network, error) {
	var n Network
	var network sync.WaitGroup
	before := link.Interrupted()
	if os.Geteuid() == 0 {
		n.ahead = replica.Launch()
		network.Go(func() { n.machine, n.err = replica.Read(ctx) })
	}
	f, rest, err := readFacts(ctx)
	if n.rest = rest; err != nil {
		return nil, n, errors.Join(err, n.ahead.Close())
	}
	network.Wait()
	f.Missing = append(f.Missing, changed(before)...)
	return f, n, nil
}

// changed reports that lists were interrupted since link.Interrupted returned before.
func changed(before int64) []ports.Missing {
	if link.Interrupted() <= before {
		return nil
	}
	return []ports.Missing{{What: "a network at rest",
		Why: "devices, addresses or routes came and went while they were read, so some may be " +
			"missing", Remedy: "run toll ports again"}}
}

// Ask tries the connections of a report on a port, or on every port if port is 0, in a copy of this
// machine's network. The outcomes are in f.Copy, and what cannot be found out is in f.Missing. If
// it tries remedies for a port, it checks the report meanwhile, as Check does, and returns the
// results. It returns an error only if ctx ends. For several ports in turn, it is called with a copy
// of the facts for each.
func Ask(ctx context.Context, f *ports.Facts, n Network, port uint16) (checks []ports.Check,
	err error) {
	defer n.rest()
	defer func() { err = errors.Join(err, n.ahead.Close()) }()
	if n.machine == nil && n.err == nil { // f.Missing already reports that rules cannot be read
		return nil, nil
	}
	err = n.err
	if err == nil {
		err = asking{read: n.machine.ReadText, early: true, start: n.ahead.Start,
			connected: n.rest, meanwhile: func() (wait func()) {
				var checked sync.WaitGroup
				if port != 0 {
					r := ports.Judge(f, port)
					checked.Go(func() { Check(ctx, r); checks = r.Checks })
				}
				return checked.Wait
			}}.ask(ctx, f, n.machine, port)
	}
	return checks, uncopied(ctx, f, err)
}

// AskSaved tries the connections in a copy of a saved machine. It needs no privileges.
func AskSaved(ctx context.Context, f *ports.Facts, m *replica.Machine, port uint16) error {
	return uncopied(ctx, f, asking{start: replica.Start}.ask(ctx, f, m, port))
}

func uncopied(ctx context.Context, f *ports.Facts, err error) error {
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	f.Copy = nil
	f.Missing = append(f.Missing, ports.Missing{What: "what happens to packets",
		Why: "cannot make a copy of the network: " + printable.Words(err.Error())})
	return nil
}

// readText reads the rules of a namespace as their user wrote them.
type readText func(ctx context.Context, space int) error

// asking has how the copy is made, and what is done besides making connections.
type asking struct {
	start func(context.Context, *replica.Machine, []replica.Socket) (*replica.Session, error)
	read  readText // nil: the machine was saved, with the rules' text or none
	early bool     // read may be called while connections are made
	// scanned is called once all scans are made; nil: it is not.
	scanned func(*ports.Copy)
	// connected is called once all connections are made; nil: it is not.
	connected func()
	// meanwhile begins what is to be done while remedies are tried; nil: nothing is.
	meanwhile func() (wait func())
}

func (a asking) ask(ctx context.Context, f *ports.Facts, m *replica.Machine, port uint16) (
	err error) {
	began := time.Now()
	c := ports.NewCopy(f, m, port)
	s, err := a.start(ctx, m, c.Sockets)
	if err != nil {
		return fmt.Errorf("copy the network: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err = a.connect(ctx, f, s, c); err != nil || f.TryFor == 0 {
		return err
	}
	if a.meanwhile != nil {
		defer a.meanwhile()()
	}
	// a busy machine needs longer
	return tryRemedies(ctx, c, s, port, max(f.TryFor, time.Since(began)))
}

// connect makes the connections of c, whose facts are f.
func (a asking) connect(ctx context.Context, f *ports.Facts, s *replica.Session,
	c *ports.Copy) error {
	if f.Client.IsValid() { // without a route, no answer gets to the client
		f.ClientDevice, _ = s.Towards(ctx, f.Client)
	}
	scans := c.Scans()
	found, err := s.Scan(ctx, scans...)
	if err != nil {
		return fmt.Errorf("look for ports: %w", err)
	}
	for i, x := range scans {
		c.Found(x, found[i])
	}
	if f.Before != nil {
		c.FoundIn(f.Before)
	}
	if a.scanned != nil {
		a.scanned(c)
	}
	answers, err := s.Dial(ctx, c.Dials())
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	c.Take(answers)
	for again := false; ; again = true { // if servers answered late
		own := c.Themselves()
		if again && len(own) == 0 {
			break
		}
		if answers, err = s.Dial(ctx, own); err != nil {
			return fmt.Errorf("connect from containers: %w", err)
		}
		c.Take(answers)
		which, dials := c.Lost()
		var text sync.WaitGroup
		if a.early && len(which) > 0 { // the rule that lost a packet is likely the machine's own
			text.Go(func() { _ = a.read(ctx, 0) })
		}
		answers, err = s.Dial(ctx, dials)
		text.Wait()
		if err != nil {
			return fmt.Errorf("follow packets: %w", err)
		}
		c.Explain(which, answers)
	}
	for _, space := range c.Quoted() {
		if a.read != nil {
			_ = a.read(ctx, space) // then a rule has a number only
		}
	}
	c.Lacks(s.Lacks())
	if a.connected != nil {
		a.connected()
	}
	return nil
}
