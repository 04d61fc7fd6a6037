package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

const shownTime = 10 * time.Millisecond // of a timeout

const closeTime = time.Second

// errTimeout means that toll's own time limit was reached, not the caller's.
var errTimeout = errors.New("timeout")

// Session is one connection. It is not safe for concurrent use.
type Session struct {
	Connect time.Duration // how long connecting took, login included

	d    *Database
	link *link
	// of connecting, then of each page
	timeout time.Duration
	db      *sql.DB
	conn    *sql.Conn
	ended   error // why there can be no further page
	broken  bool  // the driver panicked: database/sql may hold its locks
}

// Open makes a connection and logs in. It tries each address of a name, until one takes the login
// or refuses it, and gives each an equal share of the time that is left. The caller calls Close.
func (d *Database) Open(ctx context.Context) (*Session, error) {
	began := time.Now()
	addrs, took, err := d.addresses(ctx)
	if err != nil {
		return nil, err
	}
	var failed *Error
	for i, at := range addrs {
		share := (d.timeout - time.Since(began)) / time.Duration(len(addrs)-i)
		s := &Session{d: d, link: newLink(d.dial), timeout: share.Round(shownTime)}
		s.link.at, s.link.lookUp = at, took
		if err = s.connect(ctx); err == nil {
			s.Connect, s.timeout = time.Since(began), d.timeout
			return s, nil
		}
		var e *Error
		if !errors.As(err, &e) {
			return nil, err
		}
		if failed = failed.and(e, d.connecting()); e.final {
			break
		}
	}
	return nil, failed
}

// addresses returns the addresses of the DSN's name, at least one; a zero one is the DSN's own.
func (d *Database) addresses(ctx context.Context) ([]netip.Addr, time.Duration, error) {
	if d.target.name == "" {
		return []netip.Addr{{}}, 0, nil
	}
	within, cancel := context.WithTimeoutCause(ctx, d.timeout, errTimeout)
	defer cancel()
	addrs, took, err := d.lookUp(within, d.target.name)
	if err == nil && len(addrs) > 0 {
		return addrs, took, nil
	}
	e := &Error{}
	switch cause := context.Cause(within); {
	case errors.Is(cause, errTimeout):
		e.msg, e.err = fmt.Sprintf("look up the host: no answer within %s", d.timeout),
			context.DeadlineExceeded
	case cause != nil:
		e.msg, e.err = clean(cause.Error()), cause
	case err != nil:
		e.msg, e.hint = network(err)
	default:
		e.msg = "look up the host: it has no address"
	}
	e.msg = d.connecting() + ": " + short(e.msg)
	return nil, took, e
}

func (d *Database) connecting() string { return "connect to " + d.target.where }

// connect makes a connection and logs in, within the session's time.
func (s *Session) connect(ctx context.Context) error {
	d := s.d
	inner, err := d.target.connector(s.link)
	if err != nil {
		return s.explain("prepare to connect", err)
	}
	c := &connector{Connector: inner}
	s.db = sql.OpenDB(c)
	s.db.SetMaxOpenConns(1)
	err = s.bounded(ctx, func() string {
		if !s.link.at.IsValid() {
			return d.connecting()
		}
		return d.connecting() + " at " + s.link.at.String()
	}, func() (err error) {
		// The driver gets no context to cancel: the link does that.
		s.conn, err = s.db.Conn(context.Background())
		if err != nil && c.err != nil {
			return c.err
		}
		return err
	})
	if err != nil {
		_ = s.Close()
		return err
	}
	s.link.loggedIn()
	return nil
}

// connector hides the driver's errors from database/sql, which would retry on driver.ErrBadConn.
type connector struct {
	driver.Connector
	err error
}

var errConnect = errors.New("connect")

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(context.WithValue(ctx, login{}, true))
	if err != nil {
		c.err = err
		return nil, errConnect
	}
	return conn, nil
}

// Page runs a page's queries and reads each result to its end. took, if not nil, gets the time of
// each query. After an error that is not the database's own answer, and after ctx is done, the
// session has ended.
func (s *Session) Page(ctx context.Context, took func(query time.Duration)) (page time.Duration,
	err error) {
	n := 0
	err = s.bounded(ctx, func() string {
		return fmt.Sprintf("query %d of %d", n, s.d.queries)
	}, func() error {
		began := time.Now()
		asked := began
		for n = 1; n <= s.d.queries; n++ {
			if err := s.read(s.d.query, nil); err != nil {
				return err
			}
			now := time.Now()
			if took != nil {
				took(now.Sub(asked))
			}
			asked = now
		}
		page = asked.Sub(began)
		return nil
	})
	return page, err
}

func (s *Session) text(ctx context.Context, query string) (v string, err error) {
	err = s.bounded(ctx, func() string {
		return "ask for the version"
	}, func() error { return s.read(query, &v) })
	return v, err
}

// read runs a query and reads its results to their end. The drivers decode each row in Next. first,
// if not nil, gets the first value.
func (s *Session) read(query string, first *string) error {
	rows, err := s.conn.QueryContext(context.Background(), query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // again, after the one below
	for {
		for rows.Next() {
			if first != nil {
				if err := rows.Scan(first); err != nil {
					return err
				}
				first = nil
			}
		}
		if !rows.NextResultSet() {
			break
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}

// bounded calls f within the session's limits of time and bytes. op names the operation in errors.
// After an error that is not the database's own answer, the session has ended.
func (s *Session) bounded(ctx context.Context, op func() string, f func() error) (err error) {
	if s.ended != nil {
		return s.ended
	}
	if ctx.Err() != nil {
		s.link.cut(context.Cause(ctx))
		s.ended = s.explain(op(), ctx.Err())
		return s.ended
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errTimeout)
	defer cancel()
	s.link.allow()
	stop := context.AfterFunc(ctx, func() { s.link.cut(context.Cause(ctx)) })
	defer stop()
	defer func() {
		if p := recover(); p != nil { // hostile bytes may make a driver exceed a slice's bounds
			s.broken = true
			s.ended = s.explain(op(), fmt.Errorf(
				"the driver panicked while reading the server's answer: %v", p))
			s.link.cut(net.ErrClosed)
			err = s.ended
		}
	}()
	err = f()
	if err == nil {
		return nil
	}
	told := s.explain(op(), err)
	if !told.live {
		s.ended = told
		s.link.cut(net.ErrClosed) // otherwise the driver would wait to cancel the query
	}
	return told
}

// Bytes returns the bytes of the connection so far, login and TLS included.
func (s *Session) Bytes() (sent, received int64) {
	return s.link.sent.Load(), s.link.received.Load()
}

// RTT returns the kernel's smoothed round-trip time of the connection, or 0 if unknown.
func (s *Session) RTT() time.Duration { return s.link.rtt() }

// LookUp returns how long looking up the server's name took in all attempts to log in.
func (s *Session) LookUp() time.Duration {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.link.lookUp
}

// Lost returns the numbers of sent, retransmitted and out-of-order segments; 0 if unknown.
func (s *Session) Lost() (sent, resent, outOfOrder uint32) {
	if info := s.link.info(); info != nil {
		return info.Segs_out, info.Total_retrans, info.Rcv_ooopack
	}
	return 0, 0, 0
}

// Close ends the connection within a second. It always returns nil.
func (s *Session) Close() error {
	s.ended = &Error{msg: "the session is closed"}
	bound := time.AfterFunc(closeTime, func() { s.link.cut(net.ErrClosed) })
	defer bound.Stop()
	if s.conn != nil && !s.broken {
		_ = s.conn.Close() // returns it to the pool; closing follows
	}
	_ = s.db.Close()
	s.link.cut(net.ErrClosed)
	return nil
}
