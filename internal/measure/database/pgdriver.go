package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// How a query is asked, by pgx's names, which DSNs have because of poolers.
const (
	execMode       = "default_query_exec_mode"
	cacheStatement = "cache_statement" // prepared once: the default
	execAtOnce     = "exec"            // parsed each time, still one round trip
	simpleProtocol = "simple_protocol"
	execModes      = cacheStatement + ", " + execAtOnce + " or " + simpleProtocol
)

// postgresDriver is PostgreSQL for database/sql. Rows are read as text and not decoded: a page's
// values are thrown away, and decoding is more than half of pgx.
type postgresDriver struct {
	cfg  *pgconn.Config
	mode string
}

func (d postgresDriver) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := pgconn.ConnectConfig(ctx, d.cfg)
	if err != nil {
		return nil, err
	}
	return &postgresConn{conn: conn, mode: d.mode,
		prepared: map[string]*pgconn.StatementDescription{}}, nil
}

func (d postgresDriver) Driver() driver.Driver { return d }

func (d postgresDriver) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

type postgresConn struct {
	conn     *pgconn.PgConn
	mode     string
	prepared map[string]*pgconn.StatementDescription
}

func (c *postgresConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }

func (c *postgresConn) Begin() (driver.Tx, error) { return nil, errors.ErrUnsupported }

func (c *postgresConn) Close() error { return c.conn.Close(context.Background()) }

func (c *postgresConn) QueryContext(ctx context.Context, query string, _ []driver.NamedValue,
) (driver.Rows, error) {
	switch c.mode {
	case simpleProtocol:
		r := &postgresRows{all: c.conn.Exec(ctx, query)}
		if !r.all.NextResult() {
			return r, r.all.Close()
		}
		r.one = r.all.ResultReader()
		return r, nil
	case execAtOnce:
		return &postgresRows{one: c.conn.ExecParams(ctx, query, nil, nil, nil, nil)}, nil
	}
	s := c.prepared[query]
	if s == nil {
		var err error
		name := "toll" + strconv.Itoa(len(c.prepared))
		if s, err = c.conn.Prepare(ctx, name, query, nil); err != nil {
			return nil, err
		}
		c.prepared[query] = s
	}
	return &postgresRows{one: c.conn.ExecStatement(ctx, s, nil, nil, nil)}, nil
}

type postgresRows struct {
	all *pgconn.MultiResultReader // of the simple protocol
	one *pgconn.ResultReader      // nil: no result
}

func (r *postgresRows) Columns() []string {
	if r.one == nil {
		return nil
	}
	out := []string{}
	for _, f := range r.one.FieldDescriptions() {
		out = append(out, f.Name)
	}
	return out
}

func (r *postgresRows) Next(to []driver.Value) error {
	if r.one == nil {
		return io.EOF
	}
	if !r.one.NextRow() {
		if _, err := r.one.Close(); err != nil {
			return err
		}
		return io.EOF
	}
	values := r.one.Values()
	if len(values) != len(to) {
		return fmt.Errorf("a row of %d values in a result of %d columns", len(values), len(to))
	}
	for i, v := range values {
		to[i] = v
	}
	return nil
}

// HasNextResultSet goes to the next result of a query of several statements.
func (r *postgresRows) HasNextResultSet() bool {
	if r.all == nil || !r.all.NextResult() {
		return false
	}
	r.one = r.all.ResultReader()
	return true
}

func (r *postgresRows) NextResultSet() error { return nil }

func (r *postgresRows) Close() error {
	if r.all != nil {
		return r.all.Close()
	}
	if r.one == nil {
		return nil
	}
	_, err := r.one.Close()
	return err
}
