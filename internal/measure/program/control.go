package program

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/pipe"
)

// Control is the parent's side of a keeper.
type Control struct{ *pipe.Line[State] }

// NewControl talks to a keeper through its standard input and output. The caller
// ends it with Close and still waits for the process.
func NewControl(in io.WriteCloser, out io.ReadCloser) *Control {
	return &Control{pipe.New[State](in, out)}
}

// answerTimeout is how much longer than a request's own limit its answer may take.
const answerTimeout = grace + 3*time.Second

// Do sends a request and waits for what comes of it. An error is a *Error if the
// keeper told it.
func (c *Control) Do(ctx context.Context, r Request) (State, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Limit+answerTimeout, errors.New("the programs' keeper does not answer"))
	defer cancel()
	if err := c.Send(r); err != nil {
		return State{}, err
	}
	st, err := c.Await(ctx)
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
	last := lastLines(s.Stderr, saidBytes)
	if last == "" {
		last = lastLines(s.Stdout, saidBytes)
	}
	if last == "" {
		return out
	}
	return out + "; it said: " + last
}
