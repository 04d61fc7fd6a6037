package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// ErrRulesUnread means that this process is not root.
var ErrRulesUnread = errors.New("only root may read this machine's rules")

// Try runs commands in a copy of this machine's network, and tries the connections of a report
// before and after them. The outcomes are in the Copies of f, the facts before, and after. It
// returns an error if the commands cannot be run; see replica.Session.Run. Commands that fail are
// no error.
func Try(ctx context.Context, f *ports.Facts, n Network, port uint16, commands string) (
	after *ports.Facts, out replica.Output, err error) {
	switch {
	case n.err != nil:
		return nil, out, n.err
	case n.machine == nil:
		return nil, out, ErrRulesUnread
	}
	return try(ctx, f, n.machine, port, commands, n.machine.ReadText)
}

// TrySaved is like Try for a saved machine. It needs no privileges.
func TrySaved(ctx context.Context, f *ports.Facts, m *replica.Machine, port uint16,
	commands string) (after *ports.Facts, out replica.Output, err error) {
	return try(ctx, f, m, port, commands, nil)
}

// try uses two copies at the same time: one stays as it is.
func try(ctx context.Context, f *ports.Facts, m *replica.Machine, port uint16, commands string,
	read readText) (after *ports.Facts, out replica.Output, err error) {
	facts, changed := *f, *m
	changed.Spaces = slices.Clone(m.Spaces)
	before, scanned := make(chan error, 1), make(chan *ports.Copy, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(before)
		defer close(scanned)
		before <- asking{read: read, scanned: func(c *ports.Copy) { scanned <- c }}.
			ask(ctx, f, m, port)
	}()
	if after, out, err = tryIn(ctx, &facts, &changed, port, commands,
		scanned); err != nil {
		cancel()
		for range before { // it ended because of that
		}
		return nil, out, err
	}
	return after, out, <-before
}

// tryIn runs commands in a copy of m, and tries the connections of a report after them, also to the
// ports that scans found before: after the commands, a route to where they lead may be missing.
func tryIn(ctx context.Context, f *ports.Facts, m *replica.Machine, port uint16, commands string,
	before <-chan *ports.Copy) (after *ports.Facts, out replica.Output, err error) {
	sockets := ports.NewCopy(f, m, port).Sockets
	s, err := replica.Start(ctx, m, sockets)
	if err != nil {
		return nil, out, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if out, err = s.Run(ctx, replica.Command{Script: []byte(commands)}); err != nil || out.TooLarge() {
		return nil, out, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, out, err
	}
	after = f.After(m, now)
	c := ports.NewCopy(after, now, port)
	if len(c.Sockets) != len(sockets) { // an answer has its socket's index
		return nil, out, fmt.Errorf("the machine has %d sockets, then %d", len(sockets), len(c.Sockets))
	}
	return after, out, asking{
		read: func(ctx context.Context, space int) error { return s.ReadText(ctx, now, space) },
		scanned: func(c *ports.Copy) {
			if unchanged := <-before; unchanged != nil { // else it failed
				c.FoundIn(unchanged)
			}
		},
	}.connect(ctx, after, s, c)
}
