package worker

import (
	"context"
	"errors"
	"io"

	"github.com/bridgetoll/bridgetoll/internal/load"
	"github.com/bridgetoll/bridgetoll/internal/pipe"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// Session is the parent's side of a worker.
type Session struct{ *pipe.Line[Reply] }

// ErrDied says that a worker ended without an answer.
var ErrDied = pipe.ErrDied

// NewSession talks to a worker through its standard input and output. The
// caller ends it with Close and still waits for the process.
func NewSession(in io.WriteCloser, out io.ReadCloser) *Session {
	return &Session{pipe.New[Reply](in, out)}
}

func (s *Session) await(ctx context.Context) (Reply, error) {
	r, err := s.Await(ctx)
	if err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	return r, err
}

// Open gives the order and waits until the worker listens or is connected.
func (s *Session) Open(ctx context.Context, o Order) error {
	if err := s.Send(o); err != nil {
		return err
	}
	_, err := s.await(ctx)
	return err
}

// Go tells the worker when to start, measure and stop.
func (s *Session) Go(when load.Schedule) error { return s.Send(when) }

// Done waits for the load's end. The answer's Done is never nil.
func (s *Session) Done(ctx context.Context) (Reply, error) {
	r, err := s.await(ctx)
	if r.Done == nil {
		r.Done = &sample.Party{}
	}
	return r, err
}
