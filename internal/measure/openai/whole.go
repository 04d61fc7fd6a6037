package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/sse"
)

// WholeTimeouts is the time limit of a response in one piece as a multiple of the timeout.
const WholeTimeouts = 10

// AskWhole requests a response in one piece. Its Arrivals are empty; Tokens is the server's count.
func (s *Session) AskWhole(ctx context.Context) (*Response, error) {
	r, _, err := s.askWhole(ctx, s.e.o.MaxTokens)
	return r, err
}

func (s *Session) askWhole(ctx context.Context, tokens int) (r *Response, a *answer, err error) {
	request, err := s.e.chatRequest(tokens, false, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("ask %s: %w", s.e, err)
	}
	was := s.patience
	s.patience = WholeTimeouts * s.e.o.Timeout
	defer func() { s.patience = was }()
	err = s.do(ctx, request, func(got *answer) (err error) {
		a = got
		r, err = s.read(a)
		return err
	})
	if err != nil {
		return nil, nil, s.e.failed(ctx, "ask", err)
	}
	return r, a, nil
}

func (s *Session) read(a *answer) (*Response, error) {
	if err := s.failed(a); err != nil {
		return nil, err
	}
	b, err := s.body(a)
	end := a.conn.socket.at
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		within := s.patience
		if len(bytes.TrimSpace(b)) > 0 {
			within = s.e.o.Timeout
		}
		return nil, fmt.Errorf("the response did not end within %v: %d bytes came", within, len(b))
	case gone(err):
		return nil,
			fmt.Errorf(
				"the server closed the connection before the end of its response, after %d bytes",
				len(b))
	case err != nil:
		return nil, err
	}
	c, err := answerIn(b)
	switch {
	case errors.Is(err, errStreams):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("the server's answer is not a completion: %s",
			s.e.secrets.clean(string(b)))
	case bool(c.Error):
		return nil, fmt.Errorf("the server could not answer: %s", s.e.secrets.clean(c.fault))
	case !c.something():
		return nil, errors.New("the response has no token")
	}
	r := &Response{Connect: a.connect, End: end.Sub(a.begun), Tokens: c.Usage.tokens(),
		Finish: s.e.secrets.name(c.Choices[0].Finish), Remote: a.conn.remote()}
	r.RTT, r.Lost = a.conn.told()
	if a.connect > 0 {
		r.LookUp = a.conn.lookUp
	}
	return r, nil
}

// body reads a response in one piece. Once more than blank space has come, which some servers send
// while they work, the rest must come within the timeout.
func (s *Session) body(a *answer) (b []byte, err error) {
	content, err := s.content(a)
	if err != nil {
		return nil, err
	}
	a.conn.waitUntil(a.begun.Add(s.patience))
	for begun := false; ; {
		n, err := content.Read(s.buf)
		b = append(b, s.buf[:n]...)
		if !begun && len(bytes.TrimSpace(s.buf[:n])) > 0 {
			begun = true
			a.conn.waitUntil(time.Now().Add(s.e.o.Timeout))
		}
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// completion is a response in one piece.
type completion struct {
	chunk
	fault string
}

func (c completion) something() bool {
	return slices.ContainsFunc(c.Choices, func(c choice) bool {
		text, _ := c.text()
		return text != ""
	})
}

var (
	errStreams = errors.New("the server streams its response, although it was asked not to")
	errNone    = errors.New("no completion")
)

// answerIn returns the completion in a body: JSON, with or without the mark of a stream's end
// behind it, or one event. It returns errStreams for parts of one.
func answerIn(b []byte) (c completion, err error) {
	b = bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
	if bytes.HasPrefix(b, []byte("{")) {
		var raw json.RawMessage
		d := json.NewDecoder(bytes.NewReader(b))
		if err := d.Decode(&raw); err != nil {
			return c, err
		}
		rest := bytes.TrimSpace(b[d.InputOffset():])
		mark, found := bytes.CutPrefix(rest, []byte("data:"))
		if len(rest) > 0 && (!found || !ends(bytes.TrimSpace(mark))) {
			if json.Unmarshal(raw, &c) == nil && rest[0] == '{' {
				return c, errStreams
			}
			return c, errNone
		}
		return parseCompletion(raw)
	}
	err = errNone
	var events sse.Decoder
	failed := events.Feed(append(bytes.Clone(b), "\n\n"...), func(ev sse.Event) error {
		if ends(ev.Data) {
			return nil
		}
		next, bad := parseCompletion(ev.Data)
		switch {
		case bad != nil:
			return nil
		case err == nil, slices.ContainsFunc(next.Choices, func(c choice) bool {
			return c.Delta != nil
		}):
			return errStreams
		case next.Choices != nil || bool(next.Error):
			c, err = next, nil
		}
		return nil
	})
	if failed != nil {
		return c, failed
	}
	return c, err
}

func parseCompletion(b []byte) (c completion, err error) {
	if err := json.Unmarshal(b, &c.chunk); err != nil {
		return c, err
	}
	if c.Object == "error" {
		c.Error = true
	}
	if c.Error {
		c.fault = faultText(b)
	}
	return c, nil
}

func (s *Session) wait() time.Duration {
	if s.patience > 0 {
		return s.patience
	}
	return s.e.o.Timeout
}
