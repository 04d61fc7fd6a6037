package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/measure/database"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// dialogueTimeout bounds a connection, a login and each request. Tests change it.
var dialogueTimeout = 10 * time.Second

// dialogue is a connection on which requests and replies take turns.
type dialogue struct {
	ask    func(ctx context.Context) error
	close  func()
	stop   func() // makes ask return; nil: its context does
	local  uint16
	remote string // address and port
	server string // what it says that it is; "": unknown
	status int    // of the last reply of HTTP
	// spent means that the server has ended the connection, which answered several requests, or
	// follows another one (later).
	spent, later bool
	// replies tells how its requests over UDP, or of HTTP, were answered.
	replies tokens.Replies
}

// speaker opens such connections to an address.
type speaker interface {
	open(ctx context.Context) (*dialogue, error)
	// words describes a request: "GET /".
	words() string
}

// speakerOf returns the client of a URL, or of HOST:PORT, whose server is asked what it speaks.
func speakerOf(a Address, password string) (speaker, error) {
	if OnUnixSocket(a.URL) {
		return nil, UnixSocketError{}
	}
	if !strings.Contains(a.URL, "://") {
		if _, err := parseRoute(a.URL); err != nil {
			return nil, err
		}
		return &guess{wire{a.URL, a.dialler()}, password, nil}, nil
	}
	u, err := url.Parse(a.URL)
	if err != nil || u.Host == "" {
		return nil, errors.New("not a URL with a host") // url's own error would quote a password
	}
	switch u.Scheme {
	case "http", "https":
		return newHTTP(a, u)
	case "redis":
		return newRedis(a, u, password)
	case "postgres", "postgresql", "mysql", "sqlserver":
		return newQueries(a, password)
	case "dns":
		return newResolver(a, u)
	}
	return nil, &unspokenError{printable.Line(u.Scheme), printable.Line(u.Host)}
}

// OnUnixSocket reports whether an address is that of a Unix socket: a path, an abstract name with @,
// or a URL of one.
func OnUnixSocket(address string) bool {
	scheme, rest, url := strings.Cut(address, "://")
	switch {
	case !url:
		return strings.HasPrefix(address, "/") || strings.HasPrefix(address, "@") ||
			strings.HasPrefix(address, "unix:")
	case strings.Contains(scheme, "unix"):
		return true
	}
	return strings.HasPrefix(scheme, "postgres") && strings.HasPrefix(rest, "/")
}

// UnixSocketError means that the requests to a Unix socket cannot be traced.
type UnixSocketError struct{}

func (UnixSocketError) Error() string {
	return "a Unix socket: no packets go there that could be followed"
}

// Hint returns what can be traced instead.
func (UnixSocketError) Hint() string {
	return "trace the requests to the TCP port in front of it, in whose server's part its time is: " +
		remedy.AsRoot("toll trace --attach 80")
}

// unspokenError means that toll's own client does not speak the protocol of a URL's scheme.
type unspokenError struct{ scheme, host string }

// datagrams are the schemes of other protocols whose requests are UDP packets.
var datagrams = []string{udpScheme, "ntp", "coap", "quic"}

func (u *unspokenError) Error() string {
	return fmt.Sprintf("toll makes no requests to %s:// (only to http, https, redis, postgres, "+
		"mysql, sqlserver and dns)", u.scheme)
}

func (u *unspokenError) Hint() string {
	over := ""
	if slices.Contains(datagrams, u.scheme) {
		over = udpScheme + "://"
	}
	return "let a client of that protocol make them: " + byClient(over+"HOST:PORT")
}

// guess finds what a server speaks.
type guess struct {
	wire
	password string
	is       speaker
}

func (g *guess) words() string {
	if g.is == nil {
		return "a request"
	}
	return g.is.words()
}

func (g *guess) open(ctx context.Context) (*dialogue, error) {
	if g.is == nil {
		g.is = &ping{g.wire, "", g.password}
		t, err := g.is.open(ctx)
		asked := err == nil
		if asked {
			err = t.ask(ctx)
		}
		refused := unlikeError{}
		redis := errors.As(err, &refused) && refused.redis()
		switch {
		case asked && (err == nil || redis):
			return t, nil
		case redis: // the password
			return nil, err
		case asked:
			t.close()
		}
		u := &url.URL{Scheme: "http", Host: g.host, Path: "/"}
		g.is = httpOver(g.wire, u)
	}
	t, err := g.is.open(ctx)
	if err != nil {
		return nil, err
	}
	ask := t.ask
	t.ask = func(ctx context.Context) error {
		if err := ask(ctx); err != nil {
			return fmt.Errorf("%w (it answers neither PING nor GET /: give a URL)", err)
		}
		t.ask = ask
		return nil
	}
	return t, nil
}

// queries is a client of a database.
type queries struct {
	*database.Database
	dialled *netip.AddrPort // the last connection's local address
	facts   *database.Facts
}

func newQueries(a Address, password string) (speaker, error) {
	q := &queries{dialled: &netip.AddrPort{}}
	dial := a.dialler()
	d, err := database.New(a.URL, database.Options{Query: "select 1", Queries: 1, Password: password,
		Timeout: dialogueTimeout, LookUp: a.lookUps(),
		Dial: func(ctx context.Context, network, addr string) (net.Conn, vantage.Took, error) {
			c, took, err := dial(ctx, network, addr)
			if err == nil {
				if at, ok := c.LocalAddr().(*net.TCPAddr); ok {
					*q.dialled = at.AddrPort()
				}
			}
			return c, took, err
		}})
	q.Database = d
	return q, err
}

func (q *queries) words() string { return "select 1" }

func (q *queries) open(ctx context.Context) (*dialogue, error) {
	if q.facts == nil {
		f, err := q.Probe(ctx)
		if err != nil {
			return nil, err
		}
		q.facts = &f
	}
	s, err := q.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &dialogue{local: q.dialled.Port(), remote: q.facts.Remote, server: q.facts.Server,
		close: func() { _ = s.Close() }, ask: func(ctx context.Context) error {
			_, err := s.Page(ctx, nil)
			return err
		}}, nil
}
