package program

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/pipe"
)

// Session is the parent's side of a keeper.
type Session struct{ *pipe.Line[State] }

// NewSession talks to a keeper through its standard input and output. The caller
// ends it with Close and still waits for the process.
func NewSession(in io.WriteCloser, out io.ReadCloser) *Session {
	return &Session{pipe.New[State](in, out)}
}

// answerTimeout is how much longer than an order's own limit its answer may take.
const answerTimeout = grace + 3*time.Second

// Do gives an order and waits for what comes of it. An error is a *Error if the
// keeper told it.
func (s *Session) Do(ctx context.Context, o Order) (State, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit+answerTimeout, errors.New("the programs' keeper does not answer"))
	defer cancel()
	if err := s.Send(o); err != nil {
		return State{}, err
	}
	st, err := s.Await(ctx)
	if err == nil && st.Error != "" {
		err = &Error{st}
	}
	return st, err
}

// Error says what a program did not do.
type Error struct{ State State }

// saidBytes is how much of a program's last lines an error has.
const saidBytes = 600

func (e *Error) Error() string { return e.State.Error + e.State.Said() }

// Said is how the program ended, if it did so badly, and the last lines that it
// wrote, of the standard error if it has any.
func (s State) Said() string {
	out := ""
	if s.Exit != "" {
		out = " (" + s.Exit + ")"
	}
	last := LastLines(s.Stderr, saidBytes)
	if last == "" {
		last = LastLines(s.Stdout, saidBytes)
	}
	if last == "" {
		return out
	}
	return out + "; it said: " + last
}
