package endpoint

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/measure/database"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// get is a client of HTTP.
type get struct {
	wire
	url     *url.URL
	request []byte
}

func newHTTP(a Address, u *url.URL) (speaker, error) {
	if u.User != nil {
		return nil, errors.New("a user in the URL: toll sends no credentials over HTTP")
	}
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return httpOver(wire{withPort(u, usual), a.dialler()}, u), nil
}

func httpOver(w wire, u *url.URL) *get {
	return &get{w, u, fmt.Appendf(nil,
		"GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: toll\r\nAccept: */*\r\n\r\n", u.RequestURI(),
		u.Host)}
}

func (g *get) words() string { return "GET " + g.url.RequestURI() }

func (g *get) open(ctx context.Context) (*dialogue, error) {
	c, t, err := g.dial(ctx)
	if err != nil {
		return nil, err
	}
	var rw net.Conn = c
	if g.url.Scheme == "https" {
		secured := tls.Client(c, &tls.Config{ServerName: g.url.Hostname()})
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(untrusted(err, g.host), c.Close())
		}
		rw = secured
	}
	// A reply's body is not copied from one buffer to another, which takes as long as a fast server.
	const head, body = 16 << 10, 256 << 10
	br, buffer := bufio.NewReaderSize(rw, head), make([]byte, body)
	replies := 0
	t.replies.Errors = map[string]int{}
	t.ask = func(context.Context) error {
		c.within(dialogueTimeout)
		if _, err := rw.Write(g.request); err != nil {
			return t.over(replies, err)
		}
		if _, err := br.Peek(1); err != nil {
			return t.over(replies, noReply("HTTP", err))
		}
		r, err := response(br)
		if err != nil {
			return err
		}
		for err == nil {
			_, err = r.Body.Read(buffer)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		replies++
		if t.status = r.StatusCode; t.status/100 != 2 {
			t.replies.Errors[strings.TrimSpace(fmt.Sprint(t.status, " ", http.StatusText(t.status)))]++
		}
		if t.server = r.Header.Get("Server"); err == nil && r.Close {
			if t.spent = t.later || replies > 1; !t.spent {
				err = closesError{}
			}
		}
		return err
	}
	return t, nil
}

// errSpent means that a request had no reply because the server had ended the connection.
var errSpent = errors.New("the server ended the connection between two requests")

// over returns errSpent if the server ended a connection instead of a reply after others, as for a
// limit of requests or of time, or else err. The request counts as unanswered.
func (t *dialogue) over(replies int, err error) error {
	ended := errors.Is(err, errEnded) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
	if t.spent = replies > 0 && ended; t.spent {
		t.replies.Unanswered++
		return errSpent
	}
	return err
}

// response reads a response's header, behind informational ones.
func response(br *bufio.Reader) (*http.Response, error) {
	for range openai.MaxHints {
		r, err := http.ReadResponse(br, nil)
		if err != nil {
			return nil, noReply("HTTP", err)
		}
		if r.StatusCode/100 != 1 || r.StatusCode == http.StatusSwitchingProtocols {
			return r, nil
		}
	}
	return nil, unansweredError{text: fmt.Sprintf("no reply, but %d informational responses",
		openai.MaxHints)}
}

// closesError is the refusal of a server that ends the connection after each reply.
type closesError struct{}

func (closesError) Error() string {
	return "the server ends the connection after each reply, and requests are traced on one"
}

func (closesError) Hint() string {
	return "toll trace HOST:PORT --client 'curl -so /dev/null http://{addr}/' traces requests on " +
		"connections of their own"
}

// unansweredError means that a server did not answer in the protocol of the request.
type unansweredError struct {
	text string
	err  error
}

func (u unansweredError) Error() string { return u.text }

func (u unansweredError) Unwrap() error { return u.err }

func (unansweredError) Hint() string {
	return "let a client make the requests if the server speaks another protocol: " + byClient("HOST:PORT")
}

var errEnded = errors.New("the server ended the connection instead of a reply")

// noReply explains an error of reading a reply.
func noReply(protocol string, err error) error {
	var errno unix.Errno
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return unansweredError{errEnded.Error(), errEnded}
	case errors.As(err, &errno):
		return unansweredError{"no reply: " + errno.Error(), errno}
	case errors.Is(err, errLate):
		return unansweredError{errLate.Error(), errLate}
	}
	return unansweredError{text: fmt.Sprintf("no reply of %s: %s", protocol,
		printable.Line(err.Error()))}
}

// untrustedError means that the certificate of a server of HTTPS is not accepted.
type untrustedError struct{ why, hint string }

func (u untrustedError) Error() string { return "the server's certificate: " + u.why }

func (u untrustedError) Hint() string {
	return u.hint + "; or let a client make the requests: toll trace HOST:PORT " +
		"--client 'curl -kso /dev/null https://{addr}/'"
}

// untrusted explains an error of a handshake with a host.
func untrusted(err error, host string) error {
	if cert := (*tls.CertificateVerificationError)(nil); errors.As(err, &cert) {
		return untrustedError{printable.Line(cert.Err.Error()), openai.CertificateHint(err)}
	}
	if record := (tls.RecordHeaderError{}); errors.As(err, &record) {
		if is := database.Speaks(nil, record.RecordHeader[:]); is != "" {
			return foreignError{is, host}
		}
	}
	return err
}
