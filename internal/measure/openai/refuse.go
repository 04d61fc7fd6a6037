package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const eventStream = "text/event-stream"

// StatusError is an answer with a status other than 200 OK.
type StatusError struct {
	Code int
	Text string // cleaned; "": none
}

func (e *StatusError) Error() string {
	return strings.TrimRight(fmt.Sprintf("the server answered %d %s", e.Code, e.Text), " ")
}

// refused returns why an answer is not a stream of events, or nil.
func (s *Session) refused(a *answer) error {
	if err := s.failed(a, ", which holds its events back"); err != nil {
		return err
	}
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if kind == eventStream {
		return nil
	}
	if kind == "" {
		kind = "no Content-Type"
	}
	return fmt.Errorf("the server does not stream: it answered %s and not %s: %s",
		s.e.secrets.clean(kind), eventStream, s.text(a))
}

// failed returns an error for a status other than 200 OK and for a compressed response. The latter
// ends with the words compressed.
func (s *Session) failed(a *answer, compressed string) error {
	if a.StatusCode/100 == 3 {
		return s.redirected(a)
	}
	if a.StatusCode != http.StatusOK {
		return s.status(a)
	}
	if enc := a.coding(); enc != "" {
		return fmt.Errorf("the server or a gateway in front of it compresses the response (%s)%s",
			s.e.secrets.clean(enc), compressed)
	}
	return nil
}

func (s *Session) redirected(a *answer) error {
	to := a.Header.Get("Location")
	u, err := s.e.url.Parse(to)
	if to == "" || err != nil {
		return s.status(a)
	}
	u.User = nil
	if u.RawQuery != "" {
		u.RawQuery = hidden
	}
	return &StatusError{a.StatusCode, s.e.secrets.clean(
		fmt.Sprintf("and redirects to %s, which is not followed", u))}
}

func (s *Session) status(a *answer) error {
	_, reason, _ := strings.Cut(a.Status, " ")
	text := s.e.secrets.clean(reason)
	if said := s.text(a); said != "" {
		text = strings.TrimLeft(text+": "+said, ": ")
	}
	return &StatusError{a.StatusCode, text}
}

func (a *answer) coding() string {
	enc := a.Header.Get("Content-Encoding")
	if strings.EqualFold(enc, "identity") {
		return ""
	}
	return enc
}

func (s *Session) text(a *answer) string {
	const (
		most    = 1 << 20
		longest = 2 * time.Second
	)
	if a.coding() != "" {
		return ""
	}
	a.conn.waitUntil(time.Now().Add(min(longest, s.e.o.Timeout)))
	b, whole := a.all(most)
	if !whole {
		return s.e.secrets.cleanCut(string(b))
	}
	if t := faultText(b); t != "" {
		return s.e.secrets.clean(t)
	}
	return s.e.secrets.clean(string(b))
}

// all reads a body until its end, its deadline, or most bytes. whole means that the end came.
func (a *answer) all(most int64) (b []byte, whole bool) {
	b, err := io.ReadAll(io.LimitReader(a.body, most))
	return b, err == nil && int64(len(b)) < most
}

func (e *Endpoint) noAnswer(c *conn, err error, within time.Duration) error {
	// The socket's error counts, unless the bytes are not HTTP, which the parser's error shows.
	if c.socket.err != nil && !c.socket.otherwise() {
		err = c.socket.err
	}
	late := errors.Is(err, os.ErrDeadlineExceeded)
	came := maxHead - c.socket.left
	switch {
	case errors.Is(err, errHints):
		return fmt.Errorf("no response, but %d informational ones, the last of which was %s",
			c.hints, e.secrets.clean(c.hint))
	case late && c.hints > 0:
		return fmt.Errorf("no response within %v, but %d informational, the last of which was %s",
			within, c.hints, e.secrets.clean(c.hint))
	case late && came > 0:
		return fmt.Errorf("the response header did not end within %v: %d bytes came", within,
			came)
	case late:
		return fmt.Errorf("no response within %v", within)
	case gone(err) && came > 0:
		return fmt.Errorf(
			"the server closed the connection within its response header, after %d bytes",
			came)
	case gone(err):
		return errors.New("the server closed the connection without a response")
	}
	return fmt.Errorf("read the response: %s", e.secrets.clean(err.Error()))
}

func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

// failed returns err with what failed and the endpoint. If ctx has ended, its cause replaces err.
func (e *Endpoint) failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if text := e.secrets.Hide(err.Error()); text != err.Error() {
		err = errors.New(text)
	}
	return fmt.Errorf("%s %s: %w", what, e, err)
}
