package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"time"
)

// WholeTimeouts is the time limit of a response in one piece as a multiple of the timeout.
const WholeTimeouts = 10

// AskWhole requests a response in one piece. Its Arrivals are empty; Tokens is the server's count.
func (s *Session) AskWhole(ctx context.Context) (*Response, error) {
	return s.askWhole(ctx, s.e.o.MaxTokens)
}

func (s *Session) askWhole(ctx context.Context, tokens int) (*Response, error) {
	request, err := s.e.chatRequest(tokens, false)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", s.e, err)
	}
	was := s.patience
	s.patience = WholeTimeouts * s.e.o.Timeout
	defer func() { s.patience = was }()
	var r *Response
	err = s.do(ctx, request, func(a *answer) (err error) {
		r, err = s.read(a)
		return err
	})
	if err != nil {
		return nil, s.e.failed(ctx, "ask", err)
	}
	return r, nil
}

// ProbeWhole requests a short response in one piece.
func (e *Endpoint) ProbeWhole(ctx context.Context) error {
	s := e.Open()
	defer s.Close()
	_, err := s.askWhole(ctx, min(shortProbe, e.o.MaxTokens))
	return err
}

type completion struct {
	Choices []struct {
		Message *struct {
			Content          filled `json:"content"`
			ReasoningContent filled `json:"reasoning_content"`
			Reasoning        filled `json:"reasoning"`
			Refusal          filled `json:"refusal"`
			ToolCalls        filled `json:"tool_calls"`
		} `json:"message"`
		Text   filled `json:"text"` // of the older completions
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		Tokens count `json:"completion_tokens"`
	} `json:"usage"`
	Error filled `json:"error"`
}

func (s *Session) read(a *answer) (*Response, error) {
	if err := s.refusedWhole(a); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(a.body)
	end := a.conn.socket.at
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("the response did not end within %v: %d bytes came", s.patience,
			len(b))
	case gone(err):
		return nil,
			fmt.Errorf(
				"the server closed the connection before the end of its response, after %d bytes",
				len(b))
	case err != nil:
		return nil, err
	}
	var c completion
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("the server's answer is not a completion: %s",
			s.e.secrets.clean(string(b)))
	}
	if c.Error {
		return nil, fmt.Errorf("the server could not answer: %s", s.e.secrets.clean(faultText(b)))
	}
	said := false
	for _, x := range c.Choices {
		said = said || bool(x.Text) || x.Message != nil &&
			bool(x.Message.Content || x.Message.ReasoningContent || x.Message.Reasoning ||
				x.Message.Refusal || x.Message.ToolCalls)
	}
	if !said {
		return nil, errors.New("the response has no token")
	}
	r := &Response{Connect: a.connect, End: end.Sub(a.begun), Tokens: int(c.Usage.Tokens),
		Finish: s.e.secrets.clean(c.Choices[0].Finish), Remote: a.conn.remote()}
	r.RTT, r.Lost = a.conn.told()
	if a.connect > 0 {
		r.LookUp = a.conn.lookUp
	}
	return r, nil
}

func (s *Session) refusedWhole(a *answer) error {
	if err := s.failed(a, ", although it was asked not to"); err != nil {
		return err
	}
	if kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")); kind == eventStream {
		return errors.New("the server streams its response, although it was asked not to")
	}
	return nil
}

func (s *Session) wait() time.Duration {
	if s.patience > 0 {
		return s.patience
	}
	return s.e.o.Timeout
}
