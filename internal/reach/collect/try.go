package collect

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// ErrRulesUnread means that this process is not root.
var ErrRulesUnread = errors.New("only root may read this machine's rules")

// Try runs commands in a copy of this machine's network, and tries the connections of a report
// before and after them. It returns the report, which says what has changed. It returns an error if
// the commands cannot be run; see replica.Session.Run. Commands that fail, or are
// replica.Output.TooLarge, are no error; after the latter there is no report.
func Try(ctx context.Context, f *ports.Facts, n Network, port uint16, commands string) (
	r *ports.Report, out replica.Output, err error) {
	defer func() { err = errors.Join(err, n.ahead.Close()) }()
	switch {
	case n.err != nil:
		return nil, out, n.err
	case n.machine == nil:
		return nil, out, ErrRulesUnread
	}
	a := asking{read: n.machine.ReadText, early: true, start: n.ahead.Start, connected: n.rest}
	return a.try(ctx, f, n.machine, port, commands)
}

// TrySaved is like Try for a saved machine. It needs no privileges.
func TrySaved(ctx context.Context, f *ports.Facts, m *replica.Machine, port uint16,
	commands string) (r *ports.Report, out replica.Output, err error) {
	return asking{start: replica.Start}.try(ctx, f, m, port, commands)
}

// try makes the connections in a copy, runs the commands there, and makes the connections again.
func (a asking) try(ctx context.Context, f *ports.Facts, m *replica.Machine, port uint16,
	commands string) (r *ports.Report, out replica.Output, err error) {
	c := ports.NewCopy(f, m, port)
	s, err := a.start(ctx, m, c.Sockets)
	if err != nil {
		return nil, out, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err = s.Jailed(); err != nil {
		return nil, out, err
	}
	if err = a.connect(ctx, f, s, c); err != nil {
		return nil, out, err
	}
	before := make(chan *ports.Report, 1)
	go func() { before <- ports.Judge(f, port) }() // while the commands run
	if out, err = s.Run(ctx, replica.Command{Script: []byte(commands)}); err != nil || out.TooLarge() {
		return nil, out, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, out, err
	}
	was := <-before // connections may read m's rules again
	after := f.After(m, now)
	changed := ports.NewCopy(after, now, port)
	if len(changed.Sockets) != len(c.Sockets) { // an answer has its socket's index
		return nil, out, fmt.Errorf("the machine has %d sockets, then %d", len(c.Sockets),
			len(changed.Sockets))
	}
	err = asking{
		read: func(ctx context.Context, space int) error { return s.ReadText(ctx, now, space) },
		// A route to where a port led before may be missing now, and rules that cannot be copied are
		// replaced.
		scanned: func(now *ports.Copy) { now.FoundIn(c); now.SingledIn(c) },
	}.connect(ctx, after, s, changed)
	if err != nil {
		return nil, out, err
	}
	r = ports.Judge(after, port)
	_ = s.ReadText(ctx, now, 0) // after an error, no chain of Docker's is named
	r.Try(was, ports.NewTried(commands, out, now.Spaces[0].Text, hidden))
	return r, out, nil
}

// hidden reports whether this machine has the file, and a copy has not.
func hidden(name string) bool {
	_, err := os.Stat(name)
	return err == nil && !replica.InCopy(name)
}
