package replica

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// Arg is the first argument with which toll starts itself as the process of a copy; see package
// start.
const Arg = "replica"

// Session is a copy of a machine, held by child processes that die with this process.
type Session struct {
	machine *Machine
	sockets []Socket
	doubts  [][]doubt // by namespace
	// services has the doubts about packets to certain addresses, by namespace.
	services []services
	rules    [][]xtables.Doubt // rules that cannot be copied, by namespace
	// copies has one copy or, if there are rules that cannot be copied, also those that commands
	// made, two: a lenient one and a strict one, between which is what happens on the machine.
	copies   []*child
	absent   absent
	thin     *Machine // what copies are made of
	variants []Variant
	ran      []Command               // in this Session, in order
	added    map[int][]xtables.Doubt // doubtful rules that commands made, by namespace
	besides  *sync.Map               // what Machine.beside returns, by place; see withBeside
}

// Lacks is a part of the machine that the copy lacks.
type Lacks struct {
	Space  int    `json:"namespace"`
	What   string `json:"what"`
	Why    string `json:"why"`
	Device string `json:"device,omitempty"` // "": the whole namespace is affected
}

// Start builds a copy of m with stand-ins for sockets. The caller closes the Session. Fields of m
// that are not used here may be nil.
//
// If the context of Start, Dial or Scan ends first, or if the copy hangs, the copy is killed, and
// the Session is unusable.
func Start(ctx context.Context, m *Machine, sockets []Socket) (*Session, error) {
	return start(ctx, m, sockets, nil)
}

func start(ctx context.Context, m *Machine, sockets []Socket, ahead *Ahead) (*Session, error) {
	if err := m.check(sockets); err != nil {
		return nil, fmt.Errorf("copy the machine's network: %w", err)
	}
	s := &Session{machine: m, sockets: sockets, variants: []Variant{AsIs}}
	s.thin, s.absent = m.thin(sockets)
	macs := m.MACs()
	s.rules = make([][]xtables.Doubt, len(m.Spaces))
	for i := range m.Spaces {
		if s.rules[i] = m.Spaces[i].Uncertain(macs); len(s.rules[i]) > 0 {
			s.variants = []Variant{Lenient, Strict}
		}
	}
	return s.start(ctx, ahead)
}

// Again builds another copy of s's machine, as Start does but with less work. The caller closes it.
func (s *Session) Again(ctx context.Context) (*Session, error) {
	out := *s
	return out.start(ctx, nil)
}

func (s *Session) start(ctx context.Context, ahead *Ahead) (*Session, error) {
	s.copies, s.ran, s.added = make([]*child, len(s.variants)), nil, nil
	s.besides = &sync.Map{}
	err := s.each(func(i int) (err error) {
		var of *Ahead
		if i == 0 {
			of = ahead
		}
		s.copies[i], err = s.copy(ctx, s.variants[i], of)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.doubts, s.services = s.findDoubts()
	return s, nil
}

func (s *Session) copy(ctx context.Context, v Variant, ahead *Ahead) (*child, error) {
	c, err := ahead.take(s.machine.here)
	if err != nil {
		return nil, err
	}
	return startChild(ctx, Order{Machine: s.thin.bare(), Sockets: s.sockets, Variant: v}, c)
}

// each calls f for the index of each copy, concurrently.
func (s *Session) each(f func(i int) error) error {
	errs := make([]error, len(s.copies))
	var all sync.WaitGroup
	for i := range s.copies {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// bare returns m without the parts that a copy does not need.
func (m *Machine) bare() *Machine {
	b := *m
	b.Spaces = slices.Clone(m.Spaces)
	for i := range b.Spaces {
		b.Spaces[i].Text, b.Spaces[i].Unknown = nil, nil
	}
	return &b
}

// Lacks returns what could not be copied or was left out, in addition to Space.Unknown.
func (s *Session) Lacks() []Lacks { return append(s.lackOfCopies(), s.absent.lacks...) }

// lackOfCopies returns what could not be copied. Each copy may lack another rule.
func (s *Session) lackOfCopies() (out []Lacks) {
	for _, c := range s.copies {
		for _, l := range c.lacks {
			if !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	return out
}

const (
	requestTimeout = time.Minute
	perDial        = 10 * time.Millisecond
)

// Dial makes the connections, most of them at once, and returns an answer for each, in order. It
// waits at least half a second for answers, and longer if this machine is busy.
func (s *Session) Dial(ctx context.Context, dials []Dial) ([]Answer, error) {
	if len(dials) > maxDials {
		return nil, fmt.Errorf("%d connections at once are too many", len(dials))
	}
	for _, d := range dials {
		if d.Space < 0 || d.Space >= len(s.machine.Spaces) {
			return nil, fmt.Errorf("there is no namespace %d", d.Space)
		}
	}
	if len(dials) == 0 {
		return nil, nil
	}
	out := make([]Answer, len(dials))
	var which []int
	var sent []Dial
	for i, d := range dials {
		var absent bool
		if out[i], absent = s.absent.failed(s.machine, d.Client); !absent {
			which, sent = append(which, i), append(sent, d)
		}
	}
	limit := requestTimeout + time.Duration(len(sent))*perDial
	got := make([][]Answer, len(s.copies))
	err := s.each(func(i int) error {
		r, err := s.copies[i].ask(ctx, limit, request{Dials: sent})
		if err == nil && len(r.Answers) != len(sent) {
			err = fmt.Errorf("%d answers to %d connections", len(r.Answers), len(sent))
		}
		got[i] = r.Answers
		return err
	})
	if err != nil {
		return nil, err
	}
	for k, i := range which {
		out[i] = got[0][k]
		differ := len(got) > 1 && Merge(&out[i], got[1][k])
		if dials[i].OnlyLost && len(out[i].Outcomes) > 0 && out[i].Outcomes[0].Got == Connected {
			out[i].Steps, out[i].Lost = nil, nil // of the other copy
		}
		out[i].Unsure = s.unsure(ctx, dials[i], out[i], differ)
	}
	return out, nil
}

// Scan returns for each scan the TCP ports of the address that answer the client, or would answer
// without filters, or the UDP ports that rules redirect. It may miss ports of rules that compare a
// port under a mask.
func (s *Session) Scan(ctx context.Context, scans ...Scan) ([][]uint16, error) {
	out := make([][]uint16, len(scans))
	var which []int
	var sent []Scan
	for i, x := range scans {
		if _, absent := s.absent.failed(s.machine, x.Client); !absent {
			which, sent = append(which, i), append(sent, x)
		}
	}
	if len(sent) == 0 {
		return out, nil
	}
	limit := requestTimeout * time.Duration(len(sent))
	ports := make([][][]uint16, len(s.copies))
	err := s.each(func(i int) error {
		r, err := s.copies[i].ask(ctx, limit, request{Scans: sent})
		if err == nil && len(r.Ports) != len(sent) {
			err = fmt.Errorf("%d answers to %d scans", len(r.Ports), len(sent))
		}
		ports[i] = r.Ports
		return err
	})
	if err != nil {
		return nil, err
	}
	for k, i := range which {
		for _, found := range ports {
			out[i] = append(out[i], found[k]...)
		}
		slices.Sort(out[i])
		out[i] = slices.Compact(out[i])
	}
	return out, nil
}

// Towards returns the device by which the machine sends packets to an address, as its routes and
// policy rules say.
func (s *Session) Towards(ctx context.Context, to netip.Addr) (device string, err error) {
	r, err := s.copies[0].ask(ctx, requestTimeout, request{Towards: &to})
	return r.Device, err
}

// Close kills the child processes, and with them the copy.
func (s *Session) Close() error {
	return s.each(func(i int) error {
		if s.copies[i] == nil {
			return nil
		}
		return s.copies[i].close()
	})
}
