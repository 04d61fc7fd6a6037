package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Transport limits the exchanges of another RoundTripper.
type Transport struct {
	Base http.RoundTripper
	What string // the server's name, for messages
	// Limit returns how long the answer to a request may take, including its body.
	Limit func(*http.Request) time.Duration
	// Stream reports whether the answer to a request is a stream, which may last for any time.
	// Limit then applies to the time until the stream begins, and maxAnswer to each of its lines.
	// May be nil.
	Stream func(*http.Request) bool
}

// RoundTrip implements http.RoundTripper. It returns a *SlowError if the answer is late.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	limit := t.Limit(r)
	ctx, cancel := context.WithCancelCause(r.Context())
	late := time.AfterFunc(limit, func() { cancel(&SlowError{t.What, limit}) })
	done := Waiting(t.What)
	end := func() { done(); late.Stop(); cancel(nil) }
	answer, err := t.Base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, because(ctx, err)
	}
	b := &body{ReadCloser: answer.Body, ctx: ctx, end: end, left: maxAnswer}
	if b.stream = t.Stream != nil && t.Stream(r); b.stream {
		done()
		late.Stop()
	}
	answer.Body = b
	if answer.StatusCode >= http.StatusBadRequest {
		return shorten(answer)
	}
	return answer, nil
}

// maxError is how much of each text of an error answer is kept, in characters.
const maxError = 600

// shorten reads an answer with an error and cuts its texts, because they are printed.
func shorten(answer *http.Response) (*http.Response, error) {
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	var fields map[string]any
	if json.Unmarshal(text, &fields) == nil {
		for name, value := range fields {
			if s, ok := value.(string); ok {
				fields[name] = printable.Start(s, maxError)
			}
		}
		text, err = json.Marshal(fields)
	} else {
		text = []byte(printable.Start(string(text), maxError))
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	answer.Header.Del("Content-Length")
	return answer, err
}

func because(ctx context.Context, err error) error {
	if slow := new(SlowError); errors.As(context.Cause(ctx), &slow) {
		return slow
	}
	return err
}

type body struct {
	io.ReadCloser
	ctx    context.Context
	end    func()
	left   int // bytes; for a stream, of the current line
	stream bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLong
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= n
	if i := bytes.LastIndexByte(p[:n], '\n'); b.stream && i >= 0 {
		b.left = maxAnswer - (n - i - 1)
	}
	switch {
	case b.left < 0:
		return n, ErrTooLong
	case err != nil && !errors.Is(err, io.EOF):
		err = because(b.ctx, err)
	}
	return n, err
}

func (b *body) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
