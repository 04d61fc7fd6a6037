package program

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/pipe"
)

// Control is the parent's side of a keeper.
type Control struct{ *pipe.Line[State] }

// NewControl returns the Control of a keeper with this standard input and output. The caller calls
// Close and waits for the process.
func NewControl(in io.WriteCloser, out io.ReadCloser) *Control {
	return &Control{pipe.New[State](in, out)}
}

const answerTimeout = grace + 3*time.Second

// Do sends a request and waits for the reply, for a few seconds more than r.Limit. It returns an
// *Error if the keeper reported one.
func (c *Control) Do(ctx context.Context, r Request) (State, error) {
	ctx, cancel := context.WithTimeoutCause(
		ctx, r.Limit+answerTimeout, errors.New("the process that runs the "+
			"programs does not answer"))
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

// Error is a failed request's state.
type Error struct{ State State }

const saidBytes = 600

func (e *Error) Error() string { return e.State.Error + e.State.said() }

// Hint returns what to do about a program that failed without a message, or "".
func (e *Error) Hint() string {
	if e.State.Exit == "" || strings.TrimSpace(e.State.Stderr+e.State.Stdout) != "" {
		return ""
	}
	return "it printed nothing: start the command by hand to see why, curl with -S"
}

// said returns how the program ended, if it failed, and its last lines.
func (s State) said() string {
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
