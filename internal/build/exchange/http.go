package exchange

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Transport bounds the exchanges of another RoundTripper.
type Transport struct {
	Base http.RoundTripper
	What string // the server, in words
	// Limit returns how long an answer to the request may take, its body included.
	Limit func(*http.Request) time.Duration
	// Stream reports whether the answer to the request may go on for any time. Then Limit
	// bounds the time until it begins, and MaxAnswer each of its lines. Nil means never.
	Stream func(*http.Request) bool
}

// RoundTrip implements http.RoundTripper. It returns a *SlowError for an answer that is late.
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
	b := &body{ReadCloser: answer.Body, ctx: ctx, end: end, left: MaxAnswer}
	if b.stream = t.Stream != nil && t.Stream(r); b.stream {
		done()
		late.Stop()
	}
	answer.Body = b
	return answer, nil
}

// because returns the *SlowError that ended the exchange, or else err.
func because(ctx context.Context, err error) error {
	if slow := new(SlowError); errors.As(context.Cause(ctx), &slow) {
		return slow
	}
	return err
}

// body is the bounded body of an answer.
type body struct {
	io.ReadCloser
	ctx    context.Context
	end    func()
	left   int // bytes, of a stream's line
	stream bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLong
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= n
	if i := bytes.LastIndexByte(p[:n], '\n'); b.stream && i >= 0 {
		b.left = MaxAnswer - (n - i - 1)
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
