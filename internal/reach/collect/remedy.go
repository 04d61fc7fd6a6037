package collect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// mostSteps is the largest number of commands that together admit a client.
const mostSteps = 3

// session is a copy of the machine, as replica.Session.
type session interface {
	Run(context.Context, replica.Command) (replica.Output, error)
	Dial(context.Context, []replica.Dial) ([]replica.Answer, error)
	Close() error
}

// trials tries commands that may admit clients, each in a fresh copy.
type trials struct {
	c     *ports.Copy
	start func(context.Context) (session, error)
}

// tryRemedies tries commands for the connections that are lost, one connection for each cause, for
// at most limit. It returns an error only if ctx ends.
func tryRemedies(ctx context.Context, c *ports.Copy, limit time.Duration) error {
	t := trials{c, func(ctx context.Context) (session, error) {
		return replica.Start(ctx, c.Machine, c.Sockets)
	}}
	return t.run(ctx, limit)
}

func (t *trials) run(ctx context.Context, limit time.Duration) error {
	c, late := t.c, fmt.Errorf("toll tries remedies for at most %s",
		limit.Round(time.Second/10))
	within, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	for _, i := range c.Losing() {
		if c.Settled(i) {
			continue
		}
		s := &state{of: i, places: []any{c.Place(i)}}
		err := t.search(within, s)
		var missing *missingError
		if errors.As(err, &missing) {
			c.Unfinished(i, s.rejected, missing.commands, missing.Error())
			continue
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if within.Err() != nil {
			err = late
		}
		if none, ok := errors.AsType[*replica.NoJailError](err); ok {
			err = none.Reason
		}
		c.Untried = printable.Words(err.Error())
		c.Unfinished(i, s.rejected, s.trying, c.Untried)
		return nil
	}
	return nil
}

// found has the commands that admit a client, and the answers to all connections after them.
type found struct {
	commands []ports.Command
	answers  []replica.Answer
}

// state is what one search has done so far.
type state struct {
	of       int             // the connection
	trying   []ports.Command // those of the present step
	places   []any
	rejected int
	session  session       // changed by the commands of the present step; nil: to be made
	missing  *missingError // the first command that could not be tried; nil: none
}

// missingError means that this machine cannot try commands.
type missingError struct {
	commands []ports.Command
	why      string
}

func (e *missingError) Error() string { return e.why }

// search records the commands that admit the client of a connection, or that there are none.
func (t *trials) search(ctx context.Context, s *state) error {
	got, err := t.step(ctx, s, nil, t.c.Candidates(s.of))
	if s.session != nil {
		err = errors.Join(err, s.session.Close())
	}
	switch {
	case err != nil:
		return err
	case got == nil && s.missing != nil:
		return s.missing
	case got == nil:
		t.c.Rejected(s.of, s.rejected)
	default:
		t.c.Admitted(s.of, got.commands, s.rejected, got.answers)
	}
	return nil
}

// step tries the candidates, in order, in copies changed by the commands done before.
func (t *trials) step(ctx context.Context, s *state, done, candidates []ports.Command) (*found,
	error) {
	for _, x := range candidates {
		s.trying = append(done[:len(done):len(done)], x)
		if s.session == nil {
			if err := t.change(ctx, s, done); err != nil {
				return nil, err
			}
		}
		out, err := s.session.Run(ctx, x.Script())
		if err != nil {
			return nil, err
		}
		switch commands := s.trying; {
		case out.Code == 0:
			got, err := t.dial(ctx, s, commands)
			if got != nil || err != nil {
				return got, err
			}
			s.rejected++
		case out.Code == noProgram || out.TooLarge():
			s.lack(commands, out)
		default:
			s.rejected++
		}
		if s.session != nil {
			err := s.session.Close()
			if s.session = nil; err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// noProgram is the shell's exit code if it does not find a program.
const noProgram = 127

// lack records that a command cannot be tried.
func (s *state) lack(commands []ports.Command, out replica.Output) {
	if s.missing != nil {
		return
	}
	s.missing = &missingError{commands, "the program is not installed here"}
	if out.TooLarge() {
		s.missing.why = "the copy's kernel refuses so many rules at once"
	}
}

// change makes a fresh copy and runs commands in it that succeeded before.
func (t *trials) change(ctx context.Context, s *state, done []ports.Command) (err error) {
	if s.session, err = t.start(ctx); err != nil {
		return err
	}
	for _, d := range done {
		if _, err := s.session.Run(ctx, d.Script()); err != nil {
			return err
		}
	}
	return nil
}

// dial makes the connection in the changed copy. If it is lost in another place, dial tries the
// candidates for that.
func (t *trials) dial(ctx context.Context, s *state, commands []ports.Command) (*found, error) {
	dials := t.c.DialsOf(s.of)
	answers, err := s.session.Dial(ctx, dials)
	if err != nil {
		return nil, err
	}
	lost := -1
	for k, a := range answers {
		if !t.c.Through(s.of, a) {
			lost = k
			break
		}
	}
	if lost < 0 {
		all, err := s.session.Dial(ctx, t.c.AllDials())
		return &found{commands, all}, err
	}
	if lost > 0 || len(commands) == mostSteps { // lost > 0: only the first address was admitted
		return nil, nil
	}
	dials[0].Explain = true
	if answers, err = s.session.Dial(ctx, dials[:1]); err != nil {
		return nil, err
	}
	next, place := t.c.Further(s.of, commands, answers[0], s.places)
	if len(next) == 0 {
		return nil, nil
	}
	s.places = append(s.places, place)
	return t.step(ctx, s, commands, next)
}
