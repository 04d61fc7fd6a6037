// Package database runs the query load against a real database with database/sql: a page is a
// number of queries in sequence on one connection. A DSN is a URL: postgres:// (or postgresql://),
// mysql:// or sqlserver://.
//
// Each query is one round trip; pgx's first page has one more. Queries are not retried
// and connections not replaced, because a page's time would hide that.
//
// At most 64 MiB are received in one page, login or answer. Drivers may reserve more address space
// for a hostile server (SQL Server 2 GiB for a value).
package database

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/text/secret"
)

const defaultTimeout = 10 * time.Second

// Options describe the queries and the connection.
type Options struct {
	Query    string        // with one result; "": one that returns 1000 bytes in one row
	Queries  int           // per page, at least 1
	Password string        // never printed; "": what the driver finds (PGPASSWORD, ~/.pgpass)
	Timeout  time.Duration // of connecting with the login, and of each page; 0: 10 s
	// Dial connects; nil: from this machine.
	Dial func(ctx context.Context, network, addr string) (net.Conn, vantage.Took, error) `json:"-"`
	// LookUp returns a name's addresses, which are tried in order; nil: as this machine sees them.
	LookUp func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) `json:"-"`
}

// Database opens sessions with one DSN. It is safe for concurrent use.
type Database struct {
	product product
	target  target
	secrets secret.Set // passwords
	dsn     string
	query   string
	queries int
	timeout time.Duration
	dial    func(ctx context.Context, network, addr string) (net.Conn, vantage.Took, error)
	lookUp  func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error)
}

type target struct {
	where string // host:port or a socket's path
	name  string // the host, if it is one name; "": none
	// what must not be in messages; empty strings are none
	passwords []string
	// remedy if the server does not offer TLS
	plain     string
	noVerify  string // the option that accepts any certificate
	connector func(*link) (driver.Connector, error)
	// alive returns the server's own answer, if the error contains one
	alive func(error) (a answer, is bool)
}

// New parses the DSN and checks the options; it does not connect. Its errors are of type *Error.
func New(dsn string, o Options) (*Database, error) {
	if o.Queries < 1 {
		return nil, &Error{msg: fmt.Sprintf("a page of %d queries", o.Queries),
			hint: "a page has at least one query"}
	}
	if o.Timeout < 0 {
		return nil, &Error{msg: fmt.Sprintf("the timeout %s is negative", o.Timeout),
			hint: "give a time such as 10s"}
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Dial == nil {
		o.Dial = vantage.Local().Dial
	}
	if o.LookUp == nil {
		o.LookUp = vantage.Local().LookUp
	}
	p, u, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	t, err := p.parse(u, o.Password)
	if err != nil {
		return nil, err
	}
	if o.Query == "" {
		o.Query = p.query
	}
	d := &Database{product: p, target: t, dsn: shown(u), query: o.Query, queries: o.Queries,
		timeout: o.Timeout, dial: o.Dial, lookUp: o.LookUp}
	d.secrets = secret.New(t.passwords...).Showing(d.dsn, d.query)
	return d, nil
}

// String returns the DSN without any secret.
func (d *Database) String() string { return d.dsn }

// Facts are what Probe found out about a database.
type Facts struct {
	Server string
	Remote string // the address, or the socket's path
	TLS    string // "TLS 1.3"; "TLS 1.3 (login only)"; "": none
}

// Probe connects, runs one page and ends the connection.
func (d *Database) Probe(ctx context.Context) (Facts, error) {
	s, err := d.Open(ctx)
	if err != nil {
		return Facts{}, err
	}
	defer func() { _ = s.Close() }()
	if _, err := s.Page(ctx, nil); err != nil {
		return Facts{}, err
	}
	f := Facts{Server: d.product.name, Remote: s.link.remote(), TLS: s.link.tlsInUse()}
	v, err := s.text(ctx, d.product.version)
	switch {
	case err == nil:
		f.Server = short(d.secrets.Hide(d.product.server(clean(v))))
	case ctx.Err() != nil:
		return Facts{}, err
	}
	return f, nil
}

// shown returns the URL without options that may be secret. parseDSN has refused those that
// certainly are.
func shown(u *url.URL) string {
	v := *u
	v.RawQuery = redactQuery(u.RawQuery)
	return v.String()
}
