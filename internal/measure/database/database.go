// Package database is the chatty application of the query load against a real database: a page is a
// number of queries, one after another on one connection, each sent after the last result was read
// to its end. It uses database/sql and the usual drivers, as applications do.
//
// New checks a DSN, Probe tries it once, and Open returns a session whose Page is run repeatedly:
//
//	d, err := database.New("postgres://app@10.0.0.5/shop", database.Options{Queries: 20})
//	s, err := d.Open(ctx)
//	defer s.Close()
//	page, err := s.Page(ctx, func(query time.Duration) { … })
//
// A DSN is a URL for all three: postgres:// (or postgresql://), mysql:// and sqlserver://. Its
// query string is passed to the driver. Times are the client's, by the monotonic clock; bytes are
// those of the connection, TLS included. A session's connection is its own, and each query without
// parameters is one round trip on it: pgx prepares the query the first time (so the first page has
// one more round trip) and then sends Bind and Execute together; the MySQL driver sends it as text
// (COM_QUERY); the SQL Server driver sends it as a batch.
//
// A session ends with its first error other than the database's own answer to a query: its
// connection is closed at once, which also cancels a page. No query is ever repeated and no
// connection replaced, as database/sql otherwise may: that would hide in a page.
//
// Be aware:
//   - "localhost" leaves the choice of the address family, and with it that of
//     the path, to the resolver. Facts has the address that was used.
//   - At most 64 MiB are received in one page, one login or one answer. This
//     does not bound what a driver reserves before a hostile server sends the
//     bytes: the SQL Server driver reserves up to 2 GiB for a value and, over
//     TLS, the MySQL driver as many columns as are declared. That takes address
//     space rather than memory, but Go ends a process that has no more.
//   - SQL Server encrypts only the login unless the DSN says encrypt=true.
//   - If the server is not on this machine, a password is sent in the clear only
//     over TLS that the DSN requires, or if the DSN allows it (plain.go).
package database

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
)

// defaultTimeout is for a login and for a page.
const defaultTimeout = 10 * time.Second

// Options say what to ask of the database.
type Options struct {
	Query    string        // with one result; "": the database's default, which returns 1000 bytes in one row
	Queries  int           // in a page, at least 1
	Password string        // never printed; "": none, or what the driver finds itself (PGPASSWORD, ~/.pgpass)
	Timeout  time.Duration // of connecting, login included, and of each page; 0: 10 s
	// Dial connects; nil: from this machine.
	Dial func(ctx context.Context, network, addr string) (net.Conn, vantage.Took, error) `json:"-"`
}

// Database is a database that can be queried. It is safe for concurrent use.
type Database struct {
	product product
	target  target
	dsn     string // as it may be printed
	query   string
	queries int
	timeout time.Duration
	dial    func(ctx context.Context, network, addr string) (net.Conn, vantage.Took, error)
}

// target is what a driver parsed from the DSN.
type target struct {
	where     string                                // host:port or a socket's path
	password  bool                                  // there is one
	plain     string                                // the remedy if the server wants it in the clear
	noVerify  string                                // the option that accepts any certificate
	secrets   []string                              // what no message may contain
	connector func(*link) (driver.Connector, error) // for one session, over its link
	alive     func(error) (a answer, is bool)       // returns the server's own answer, if the error is one
}

// New parses the DSN and checks the options; it does not connect. Its errors
// are of type *Error.
func New(dsn string, o Options) (*Database, error) {
	if o.Queries < 1 {
		return nil, &Error{msg: fmt.Sprintf("%d queries in a page", o.Queries), hint: "a page is at least one query"}
	}
	if o.Timeout < 0 {
		return nil, &Error{msg: fmt.Sprintf("timeout %s", o.Timeout), hint: "give a time such as 10s"}
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Dial == nil {
		o.Dial = vantage.Local().Dial
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
	return &Database{product: p, target: t, dsn: shown(u), query: o.Query, queries: o.Queries, timeout: o.Timeout, dial: o.Dial}, nil
}

// String returns the DSN without any secret.
func (d *Database) String() string { return d.dsn }

// Facts are what a database reports of itself and the route to it.
type Facts struct {
	Server string // product and version, in one line
	Remote string // the address that was connected to, or the socket's path
	TLS    string // "TLS 1.3"; "TLS 1.3 (login only)"; "": none
}

// Probe connects, runs one page and ends the connection.
func (d *Database) Probe(ctx context.Context) (Facts, error) {
	s, err := d.Open(ctx)
	if err != nil {
		return Facts{}, err
	}
	defer func() { _ = s.Close() }() // never fails
	if _, err := s.Page(ctx, nil); err != nil {
		return Facts{}, err
	}
	f := Facts{Server: d.product.name, Remote: s.link.remote(), TLS: s.link.tlsInUse()}
	v, err := s.text(ctx, d.product.version)
	switch {
	case err == nil:
		f.Server = short(d.product.server(clean(v)))
	case ctx.Err() != nil:
		return Facts{}, err
	}
	// A proxy may not know its version. The page was answered, so that is not an error.
	return f, nil
}

// shown returns the URL without what may be a secret. Certain secrets were refused before.
func shown(u *url.URL) string {
	v := *u
	v.RawQuery = redactQuery(u.RawQuery)
	return v.String()
}
