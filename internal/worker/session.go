package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/bridgetoll/bridgetoll/internal/load"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// maxReply bounds what a worker may answer, in bytes.
const maxReply = 8 << 20

// Session is the parent's side of a worker.
type Session struct {
	in      io.WriteCloser
	out     io.ReadCloser
	enc     *json.Encoder
	replies chan answer
}

type answer struct {
	reply Reply
	err   error
}

// NewSession talks to a worker through its standard input and output. The
// caller ends it with Close and still waits for the process.
func NewSession(in io.WriteCloser, out io.ReadCloser) *Session {
	s := &Session{in: in, out: out, enc: json.NewEncoder(in), replies: make(chan answer, 1)}
	go s.read()
	return s
}

func (s *Session) read() {
	defer close(s.replies)
	dec := json.NewDecoder(io.LimitReader(s.out, maxReply))
	for {
		var a answer
		a.err = dec.Decode(&a.reply)
		s.replies <- a
		if a.err != nil {
			return
		}
	}
}

// ErrDied says that a worker ended without an answer.
var ErrDied = errors.New("the worker died")

func (s *Session) await(ctx context.Context) (Reply, error) {
	select {
	case <-ctx.Done():
		return Reply{}, context.Cause(ctx)
	case a, ok := <-s.replies:
		switch {
		case !ok, errors.Is(a.err, io.EOF), errors.Is(a.err, io.ErrUnexpectedEOF):
			return Reply{}, ErrDied
		case a.err != nil:
			return Reply{}, fmt.Errorf("read the worker's answer: %w", a.err)
		case a.reply.Error != "":
			return a.reply, errors.New(a.reply.Error)
		}
		return a.reply, nil
	}
}

// send writes to the worker; one that is gone is ErrDied.
func (s *Session) send(v any) error {
	if err := s.enc.Encode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrDied, err)
	}
	return nil
}

// Open gives the order and waits until the worker listens or is connected.
func (s *Session) Open(ctx context.Context, o Order) error {
	if err := s.send(o); err != nil {
		return err
	}
	_, err := s.await(ctx)
	return err
}

// Go tells the worker when to start, measure and stop.
func (s *Session) Go(when load.Schedule) error { return s.send(when) }

// Done waits for the load's end. The answer's Done is never nil.
func (s *Session) Done(ctx context.Context) (Reply, error) {
	r, err := s.await(ctx)
	if r.Done == nil {
		r.Done = &sample.Party{}
	}
	return r, err
}

// Close ends the worker's input, at which it exits.
func (s *Session) Close() error {
	err := s.in.Close()
	go func() { // a reader that still waits must not hold the pipe's other end
		for range s.replies {
		}
		s.out.Close()
	}()
	return err
}
