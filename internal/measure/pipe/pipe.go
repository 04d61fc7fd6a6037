// Package pipe is the parent's side of a process that is controlled only by JSON lines on its
// standard input and output.
package pipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const maxReply = 8 << 20 // bytes

// ErrDied means that the process ended without an answer.
var ErrDied = errors.New("the worker died")

// Line sends requests to a process and receives its answers of type R.
type Line[R any] struct {
	in      io.WriteCloser
	out     io.ReadCloser
	enc     *json.Encoder
	replies chan answer[R]
}

type answer[R any] struct {
	reply R
	err   error
}

// New returns a Line to a process by its standard input and output. The caller ends it with Close
// and waits for the process.
func New[R any](in io.WriteCloser, out io.ReadCloser) *Line[R] {
	l := &Line[R]{in: in, out: out, enc: json.NewEncoder(in), replies: make(chan answer[R], 1)}
	go l.read()
	return l
}

func (l *Line[R]) read() {
	defer close(l.replies)
	limited := &io.LimitedReader{R: l.out}
	dec := json.NewDecoder(limited)
	for {
		var a answer[R]
		limited.N = maxReply
		a.err = dec.Decode(&a.reply)
		l.replies <- a
		if a.err != nil {
			return
		}
	}
}

// sendTimeout is how long a process may leave its full pipe unread. Tests change it.
var sendTimeout = 3 * time.Second

// Send sends a request. It returns ErrDied if the process is gone. If the process does not read, it
// returns an error after sendTimeout, or blocks if the input does not support deadlines.
func (l *Line[R]) Send(v any) error {
	if in, ok := l.in.(interface{ SetWriteDeadline(time.Time) error }); ok {
		// fails for a file without deadlines, which blocks
		_ = in.SetWriteDeadline(time.Now().Add(sendTimeout))
	}
	err := l.enc.Encode(v)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the worker does not read its requests: %w", err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDied, err)
	}
	return nil
}

// Await waits for the next answer. It returns ErrDied if the process ended, and ctx's cause if ctx
// ends before.
func (l *Line[R]) Await(ctx context.Context) (R, error) {
	var none R
	select {
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case a, ok := <-l.replies:
		switch {
		case !ok, errors.Is(a.err, io.EOF), errors.Is(a.err, io.ErrUnexpectedEOF):
			return none, ErrDied
		case a.err != nil:
			return none, fmt.Errorf("read the worker's answer: %w", a.err)
		}
		return a.reply, nil
	}
}

// Close ends the process's input, at which it exits.
func (l *Line[R]) Close() error {
	err := l.in.Close()
	go func() { // a reader that still waits must not hold the pipe's other end
		for range l.replies {
		}
		l.out.Close()
	}()
	return err
}
