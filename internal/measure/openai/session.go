package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Session sends requests on its own connection. Not for concurrent use.
type Session struct {
	e     *Endpoint
	conn  *conn // nil: none is open
	opens int
	buf   []byte
	// patience is how long a whole response may take; 0: it is streamed.
	patience time.Duration
}

// Close closes the connection. The next request opens another.
func (s *Session) Close() {
	if s.conn != nil {
		s.conn.drop()
		s.conn = nil
	}
}

// Ask requests a streamed response. Options.Timeout limits each wait for a token, and only ctx the
// whole response.
func (s *Session) Ask(ctx context.Context) (*Response, error) {
	r, _, err := s.ask(ctx, s.e.o.MaxTokens)
	return r, err
}

func (s *Session) ask(ctx context.Context, tokens int) (*Response, *answer, error) {
	mark := s.e.mark()
	request, err := s.e.chatRequest(tokens, true, mark)
	if err != nil {
		return nil, nil, fmt.Errorf("ask %s: %w", s.e, err)
	}
	var r *Response
	var a *answer
	err = s.do(ctx, request, func(got *answer) (err error) {
		a = got
		a.mark = mark
		r, err = s.collect(a, tokens)
		return err
	})
	if err != nil {
		return nil, nil, s.e.failed(ctx, "ask", err)
	}
	return r, a, nil
}

type answer struct {
	*http.Response
	body    *body
	conn    *conn
	begun   time.Time // when writing the request began
	connect time.Duration
	mark    uint32
	asked   int64 // bytes of the connection sent up to the request's end
}

// errStale means that the server closed a connection that was open before the request.
var errStale = errors.New("the server closed the idle connection")

// do sends a request and calls read with the answer. It reuses the open connection, and tries again
// on a new one if that was stale. It keeps the connection if read has read the whole response.
func (s *Session) do(ctx context.Context, request []byte, read func(*answer) error) error {
	if s.conn != nil && !s.conn.quiet() {
		s.Close()
	}
	err := s.try(ctx, request, read)
	if errors.Is(err, errStale) {
		err = s.try(ctx, request, read) // on a new connection
	}
	return err
}

func (s *Session) try(ctx context.Context, request []byte, read func(*answer) error) (err error) {
	reused := s.conn != nil
	a := &answer{}
	if !reused {
		if s.conn, a.connect, err = s.e.connect(ctx); err != nil {
			return err
		}
		s.opens++
	}
	c := s.conn
	stop := context.AfterFunc(ctx, c.drop)
	defer func() {
		if !stop() || err != nil || a.Close || !a.body.whole() {
			s.Close()
		}
	}()
	c.socket.allow(maxHead, fmt.Errorf("the response header is longer than %d KiB",
		maxHead>>10))
	a.conn, a.begun = c, time.Now()
	if err := c.SetDeadline(a.begun.Add(s.wait())); err != nil {
		return err
	}
	if _, err = c.Write(request); err == nil {
		a.asked = c.socket.sent
		a.Response, err = c.head(a.begun.Add(s.wait()), s.e.o.Timeout)
	}
	if err != nil {
		if reused && c.socket.left == maxHead && gone(err) {
			return errStale
		}
		return s.noAnswer(c, err)
	}
	c.socket.allow(s.e.mostBytes, fmt.Errorf(
		"the response is longer than %d MiB", s.e.mostBytes>>20))
	a.body = newBody(c.br, a.Response, s.e.mostBytes, s.e.secrets.clean)
	return read(a)
}

// drain reads the rest of a response, or closes the connection if that does not end soon.
func (s *Session) drain(a *answer) {
	const (
		longest = 200 * time.Millisecond
		most    = 16
	)
	a.conn.waitUntil(time.Now().Add(longest))
	for range most {
		if _, err := io.ReadFull(a.body, s.buf); err != nil {
			return
		}
	}
}
