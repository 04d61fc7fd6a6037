package database

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Error is one line, without secrets, about a DSN, a database or the route to it. It wraps only
// errors of contexts.
type Error struct {
	msg, hint string
	err       error // context.Canceled, context.DeadlineExceeded or a context's cause
	live      bool  // the database's own answer: the session continues
	final     bool  // another address would not help
}

func (e *Error) Error() string { return e.msg }
func (e *Error) Unwrap() error { return e.err }

func (e *Error) Hint() string { return e.hint }

// and returns the error of several addresses: e and then more, without the operation that begins
// both. e may be nil.
func (e *Error) and(more *Error, op string) *Error {
	if e == nil {
		return more
	}
	both := *more
	both.msg = e.msg + ";" + strings.TrimPrefix(more.msg, op)
	both.hint = cmp.Or(more.hint, e.hint)
	return &both
}

type answer struct {
	// around the text: "ERROR 1045: ", " (SQLSTATE 28P01)"
	before, after string

	text  string
	live  bool
	login bool   // user or password refused
	hint  string // "": the one for a refused login
	later bool   // the server is starting or stopping
}

// explain returns the error of an operation. It prefers what was seen on the link to the driver's
// error, because drivers report the same failure differently, or hide it.
func (s *Session) explain(op string, err error) *Error {
	e := &Error{}
	wrote, read, netErr := s.link.heads()
	p := s.d.product
	cause := context.Cause(s.link.ctx)
	said, answered := s.d.target.alive(err)
	switch {
	case cause != nil && !errors.Is(cause, net.ErrClosed):
		e.msg, e.err = s.ranOut(cause, len(read)), cause
		switch {
		case errors.Is(cause, errTimeout):
			e.err = context.DeadlineExceeded
			if len(read) == 0 && p.first != "" {
				e.hint = p.first + "; does one run at this address?"
			} else if len(read) == 0 {
				e.hint = "does " + p.name + " run at this address? toll ports PORT shows which " +
					"program listens"
			}
		case errors.Is(cause, errPlain):
			e.err, e.hint = nil, s.d.target.plain
		case errors.Is(cause, errTooMuch), errors.Is(cause, errColumns):
			e.err = nil
		}
	case strings.Contains(err.Error(), asksPassword):
		e.msg, e.hint = errPlain.Error(), s.d.target.plain
	case answered:
		e.msg, e.live = said.before+s.d.secrets.Words(said.text)+said.after, said.live
		e.hint = cmp.Or(said.hint, s.loginHint(said))
	case netErr != nil:
		e.msg, e.hint = network(netErr)
	default:
		e.msg, e.hint = s.d.driverSaid(err)
	}
	if it := Speaks(wrote, read); it != "" && !strings.Contains(it, p.name) {
		e.msg, e.hint = "this is not "+p.name+": "+it, "check the port"
	}
	e.final = answered && !said.later || cause != nil && !errors.Is(cause, net.ErrClosed) &&
		!errors.Is(cause, errTimeout)
	e.msg = op + ": " + short(s.d.secrets.Hide(e.msg))
	return e
}

// asksPassword is part of pgx's message if require_auth forbids a password in clear text.
const asksPassword = "failed: server requested password authentication"

func (s *Session) ranOut(cause error, read int) string {
	switch {
	case !errors.Is(cause, errTimeout):
		return clean(cause.Error())
	case read == 0 && s.link.remote() == "":
		return fmt.Sprintf("no connection within %s", s.timeout)
	case read == 0:
		return fmt.Sprintf("connected, but no answer within %s", s.timeout)
	}
	return fmt.Sprintf("no complete answer within %s", s.timeout)
}

func (s *Session) loginHint(a answer) string {
	switch {
	case !a.login:
		return ""
	case strings.Join(s.d.target.passwords, "") != "":
		return "check the user and the password in the environment variable"
	}
	return "no password was given; " + passwordHint
}

const databaseHint = "check the database's name in the DSN, and the user's right to it"

func network(err error) (msg, hint string) {
	var (
		dns   *net.DNSError
		errno syscall.Errno
	)
	switch {
	case errors.As(err, &dns):
		return "look up the host: " + clean(dns.Err), vantage.CheckName
	case errors.Is(err, io.EOF):
		return "the server closed the connection", ""
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused", vantage.StartFirst
	case errors.As(err, &errno):
		return errno.Error(), vantage.DialHint(err)
	}
	return clean(err.Error()), ""
}

func (d *Database) driverSaid(err error) (msg, hint string) {
	t := d.target
	certHint := "name its CA in the DSN, or accept any certificate with " + t.noVerify
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return "the server's certificate: " + clean(cert.Err.Error()), certHint
	}
	// go-mssqldb returns it as text.
	if _, why, ok := strings.Cut(err.Error(), "tls: failed to verify certificate: "); ok {
		return "the server's certificate: " + clean(why), certHint
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	// pgx reports each attempt in a line.
	msg = lines[len(lines)-1]
	if _, after, ok := strings.Cut(msg, t.where+" ("); ok {
		if _, after, ok = strings.Cut(after, "): "); ok {
			msg = after
		}
	}
	msg = strings.TrimPrefix(d.secrets.Words(msg), "failed to receive message: ")
	for _, g := range garbled {
		if strings.Contains(msg, g) {
			return "cannot read the server's answer: " + msg, "check the port"
		}
	}
	return msg, ""
}

// Parts of the drivers' messages for a foreign protocol.
var garbled = []string{
	"invalid connection", "bad connection", "malformed packet", "out of sync",
	"invalid message length", "invalid body length", "unknown message type",
	"invalid packet size", "PRELOGIN RESPONSE", "first record does not look like a TLS handshake",
}

var protocols = []struct{ begin, is string }{
	{"HTTP/", "it speaks HTTP"},
	{"SSH-", "it speaks SSH"},
	{"220 ", "it speaks SMTP or FTP"},
	{"220-", "it speaks SMTP or FTP"},
	{"+OK", "it speaks Redis or POP3"},
	{"-ERR", "it speaks Redis or POP3"},
	{"* OK", "it speaks IMAP"},
	{"INFO {", "it speaks NATS"},
	{"\x15\x03", "it speaks TLS only"},
	{"E\x00\x00", "it speaks PostgreSQL"},
	{"R\x00\x00", "it speaks PostgreSQL"},
}

// Speaks says what a server speaks by the first bytes that it sent, after wrote: "it speaks MySQL".
// It returns "" if they do not tell.
func Speaks(wrote, read []byte) string {
	for _, p := range protocols {
		if bytes.HasPrefix(read, []byte(p.begin)) {
			return p.is
		}
	}
	if len(read) > 5 && read[2] == 0 && read[3] == 0 && read[4] == 10 && '0' <= read[5] &&
		read[5] <= '9' {
		return "it speaks MySQL"
	}
	if settings := "\x04\x00\x00\x00\x00\x00"; len(read) > 8 && read[0] == 0 && read[1] == 0 &&
		string(read[3:9]) == settings {
		return "it speaks h2c, as gRPC does"
	}
	if n := min(len(wrote), len(read)); n >= 8 && bytes.Equal(wrote[:n], read[:n]) {
		return "it sends back what it gets"
	}
	return ""
}

const maxMessage = 400 // characters

func clean(msg string) string { return printable.Words(msg) }

func short(msg string) string { return printable.Start(msg, maxMessage) }
