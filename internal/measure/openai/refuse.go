package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/text/secret"
)

const (
	eventStream = "text/event-stream"
	plainJSON   = "application/json"
	page        = "text/html"
)

// StatusError is an answer with a status other than 200 OK.
type StatusError struct {
	Code int
	Text string // cleaned; "": none

	members []string // of the request that the server refuses
	hint    string
}

// Hint returns a remedy, or "".
func (e *StatusError) Hint() string { return e.hint }

func (e *StatusError) Error() string {
	return strings.TrimRight(fmt.Sprintf("the server answered %d %s", e.Code, e.Text), " ")
}

// failed returns an error for a status other than 200 OK.
func (s *Session) failed(a *answer) error {
	switch {
	case a.StatusCode/100 == 3:
		return s.redirected(a)
	case a.StatusCode != http.StatusOK:
		return s.status(a)
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
		u.RawQuery = secret.Mask
	}
	return &StatusError{Code: a.StatusCode, Text: fmt.Sprintf(
		"and redirects to %s, which is not followed", s.e.secrets.clean(u.String()))}
}

func (s *Session) status(a *answer) error {
	_, reason, _ := strings.Cut(a.Status, " ")
	e := &StatusError{Code: a.StatusCode, Text: s.e.secrets.clean(reason)}
	content, err := s.content(a)
	if err != nil {
		return e
	}
	b, whole := s.rest(a, content)
	said := s.text(b, whole)
	if a.kind() == page {
		said = "an HTML page"
	}
	if said != "" {
		e.Text = strings.TrimLeft(e.Text+": "+said, ": ")
	}
	lower := bytes.ToLower(b)
	if foreign[a.StatusCode] && !bytes.Contains(lower, []byte("model")) {
		e.hint = s.e.otherServers()
	}
	if a.StatusCode == http.StatusUpgradeRequired ||
		a.StatusCode/100 == 4 && bytes.Contains(lower, []byte("websocket")) {
		e.hint = "toll stream speaks HTTP/1.1, and not WebSocket or HTTP/2; any client: " +
			anyClient(s.e.url)
	}
	if a.StatusCode == http.StatusBadRequest || a.StatusCode == http.StatusUnprocessableEntity {
		e.members = refusedMembers(b)
	}
	return e
}

// foreign has the statuses of servers that do not have the interface. Those that have it answer 404
// for an unknown model, and name it.
var foreign = map[int]bool{http.StatusNotFound: true, http.StatusMethodNotAllowed: true,
	http.StatusNotImplemented: true}

// otherServers returns the hint for a server without the interface of OpenAI.
func (e *Endpoint) otherServers() string {
	return fmt.Sprintf("toll stream needs an OpenAI-compatible server; any web server: toll run %s "+
		"--client 'curl -so /dev/null %s://{addr}/'", e.addr(), e.url.Scheme)
}

// rest reads a text until its end, 1 MiB or 2 s. whole means that the end came.
func (s *Session) rest(a *answer, content io.Reader) (b []byte, whole bool) {
	const (
		most    = 1 << 20
		longest = 2 * time.Second
	)
	a.conn.waitUntil(time.Now().Add(min(longest, s.e.o.Timeout)))
	return all(content, most)
}

// text returns what a server says in a text, cleaned.
func (s *Session) text(b []byte, whole bool) string {
	if !whole {
		return s.e.secrets.cleanCut(string(b))
	}
	if t := faultText(b); t != "" {
		return s.e.secrets.clean(t)
	}
	return s.e.secrets.clean(string(b))
}

// all reads until the end, the deadline, or most bytes. whole means that the end came.
func all(from io.Reader, most int64) (b []byte, whole bool) {
	b, err := io.ReadAll(io.LimitReader(from, most))
	return b, err == nil && int64(len(b)) < most
}

// notEvents returns the error for a response that begins with the given bytes and is no stream of
// events.
func (s *Session) notEvents(a *answer, begin []byte, content io.Reader) error {
	b, whole := s.rest(a, content)
	b = append(bytes.Clone(begin), b...)
	kind := a.kind()
	d := json.NewDecoder(bytes.NewReader(b))
	var first, second json.RawMessage
	if d.Decode(&first) == nil && d.Decode(&second) == nil {
		return &hinted{fmt.Sprintf("the server sends lines of JSON (%s), not events: %s",
			s.e.secrets.clean(kind), s.text(b, whole)),
			"Ollama's OpenAI-compatible interface is at its /v1: " + s.e.root("/v1")}
	}
	err := s.e.noStream(kind, s.text(b, whole))
	if answer, e := answerIn(b); e == nil && answer.something() {
		err.hint = "--load batch asks for whole responses"
	}
	return err
}

// noStream returns the error for a response of a media type that is no stream of events. said is
// what it says, cleaned.
func (e *Endpoint) noStream(kind, said string) *hinted {
	switch kind {
	case eventStream:
		said = fmt.Sprintf("it sent no events as %s: %s", kind, said)
	default:
		said = fmt.Sprintf("it answered %s and not %s: %s", e.secrets.clean(kind), eventStream, said)
	}
	err := &hinted{text: "the server does not stream: " + said}
	if kind == page {
		err.hint = e.otherServers()
	}
	return err
}

// kind returns the media type of a response's body.
func (a *answer) kind() string {
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if kind == "" {
		return "no Content-Type"
	}
	return kind
}

// hinted is an error with what the user can do about it.
type hinted struct{ text, hint string }

func (e *hinted) Error() string { return e.text }

func (e *hinted) Hint() string { return e.hint }

// onlyHTTP2 returns the error for a server without HTTP/1.1.
func (e *Endpoint) onlyHTTP2() error {
	how := "--http2-prior-knowledge"
	if e.url.Scheme == "https" {
		how = "--http2"
	}
	at := *e.url
	at.RawQuery = ""
	return &hinted{"the server speaks HTTP/2 only, and toll HTTP/1.1", fmt.Sprintf(
		"let it accept HTTP/1.1, or measure with another client, of gRPC with one of its own: toll run "+
			"%s --client 'curl -sNo /dev/null %s %s'", e.addr(), how, e.secrets.Hide(at.String()))}
}

// root returns the server's URL with another path.
func (e *Endpoint) root(path string) string {
	u := url.URL{Scheme: e.url.Scheme, Host: e.url.Host, Path: path}
	return u.String()
}

func (s *Session) noAnswer(c *conn, err error) error {
	e, within := s.e, s.wait()
	came := maxHead - c.socket.left
	if came > 0 {
		within = e.o.Timeout
	}
	if c.http2() {
		return e.onlyHTTP2()
	}
	// The socket's error counts, unless the bytes are not HTTP, which the parser's error shows.
	if c.socket.err != nil && !c.foreign() {
		err = c.socket.err
	}
	late := errors.Is(err, os.ErrDeadlineExceeded)
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
		return errNoResponse
	}
	said := &hinted{text: "read the response: " + e.secrets.clean(err.Error())}
	if c.foreign() {
		said.hint = needsHTTP
	}
	return said
}

const needsHTTP = "toll stream needs an HTTP server; toll ports PORT shows which program listens " +
	"on a port"

var errNoResponse = &hinted{"the server closed the connection without a response",
	"if the server speaks TLS, its URL begins with https://; " + needsHTTP}

func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

// failed returns err with what failed and the endpoint. If ctx has ended, its cause replaces err.
func (e *Endpoint) failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	refused := errors.Is(err, syscall.ECONNREFUSED)
	if text := e.secrets.Hide(err.Error()); text != err.Error() {
		err = errors.New(text)
	}
	err = fmt.Errorf("%s %s: %w", what, e, err)
	if refused {
		return &refusedError{err}
	}
	return err
}

type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

func (e *refusedError) Hint() string { return vantage.StartFirst }
