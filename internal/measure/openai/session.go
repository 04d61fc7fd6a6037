package openai

import (
	"bytes"
	"context"
	"encoding/json"
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
	request, err := s.e.chatRequest(tokens, true)
	if err != nil {
		return nil, nil, fmt.Errorf("ask %s: %w", s.e, err)
	}
	var r *Response
	var a *answer
	err = s.do(ctx, request, func(got *answer) (err error) {
		a = got
		r, err = s.collect(a)
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
		a.Response, err = c.head()
	}
	if err != nil {
		if reused && c.socket.left == maxHead && gone(err) {
			return errStale
		}
		return s.e.noAnswer(c, err, s.wait())
	}
	c.socket.allow(s.e.mostBytes, fmt.Errorf(
		"the response is longer than %d MiB", s.e.mostBytes>>20))
	a.body = newBody(c.br, a.Response, s.e.mostBytes)
	return read(a)
}

func (e *Endpoint) chatRequest(tokens int, stream bool) ([]byte, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	type options struct {
		IncludeUsage bool `json:"include_usage"`
	}
	ask := struct {
		Model     string    `json:"model"`
		Messages  []message `json:"messages,omitempty"`
		Prompt    string    `json:"prompt,omitempty"`
		MaxTokens int       `json:"max_tokens"`
		// no randomness, and a seed, for the same response each time, as far as possible
		Temperature int      `json:"temperature"`
		Seed        int      `json:"seed"`
		Stream      bool     `json:"stream"`
		Options     *options `json:"stream_options,omitempty"` // refused without a stream
	}{Model: e.o.Model, MaxTokens: tokens, Seed: 1, Stream: stream}
	kind := "application/json"
	if stream {
		ask.Options, kind = &options{true}, eventStream
	}
	if ask.Model == "" {
		ask.Model = defaultModel
	}
	if e.legacy {
		ask.Prompt = e.o.Prompt
	} else {
		ask.Messages = []message{{"user", e.o.Prompt}}
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, e.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", kind)
	req.Header.Set("Content-Type", "application/json")
	return e.render(req)
}

func (e *Endpoint) render(req *http.Request) ([]byte, error) {
	req.Header.Set("User-Agent", "toll")
	// A server that compresses a stream holds its events back.
	req.Header.Set("Accept-Encoding", "identity")
	if e.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.o.Key)
	}
	var b bytes.Buffer
	err := req.Write(&b)
	return b.Bytes(), err
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
