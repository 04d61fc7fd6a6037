package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/database"
	"github.com/bridgetoll/bridgetoll/internal/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// sqlFlags say what is asked of a database.
type sqlFlags struct {
	dsn               []string
	query             string
	queries, sessions int
	passwordEnv       string
	timeout           time.Duration
}

func (f *sqlFlags) add(fl *pflag.FlagSet) {
	fl.StringArrayVar(&f.dsn, "dsn", nil, "[NAME=]URL of the database, once for each way to reach it: postgres:// mysql:// sqlserver://, without a password")
	fl.StringVar(&f.query, "query", "", "the query (default one that returns about 1 KiB and reads no table)")
	fl.IntVar(&f.queries, "queries", 20, "queries of a page, one after another")
	fl.IntVar(&f.sessions, "sessions", 1, "sessions at one time, each with a connection of its own")
	fl.StringVar(&f.passwordEnv, "password-env", "", "environment variable that holds the password (PostgreSQL's PGPASSWORD and ~/.pgpass are read anyway)")
	fl.DurationVar(&f.timeout, "timeout", 10*time.Second, "longest time for a login and for a page")
}

// sqlWarmup is long enough for statements to be prepared and plans to be cached.
const sqlWarmup = 0.05

func newSQL(e env) *cobra.Command {
	var (
		f runFlags
		s sqlFlags
	)
	c := &cobra.Command{
		Use:   "sql --dsn [NAME=]URL…",
		Short: "What does the network cost a chatty application's pages, against a real database?",
		Long: `sql makes pages of small queries, one after another on one connection, against a
real database over each way to reach it, in shuffled rounds, and compares how long
pages take. Each --dsn is another way to the same database, such as its published
port and its container's address.

Passwords are never taken from the command line, where every user of the machine
can read them.`,
		Example: `  toll sql --dsn published=postgres://app@127.0.0.1:5432/shop --dsn direct=postgres://app@172.17.0.2:5432/shop
  toll sql --dsn mysql://app@10.0.0.5/shop --password-env DB_PASSWORD --query 'SELECT * FROM items LIMIT 10'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			const example = "toll sql --dsn published=postgres://app@127.0.0.1:5432/shop --dsn direct=postgres://app@172.17.0.2:5432/shop"
			w, err := parseWays(s.dsn, "sql", "--dsn", example)
			if err == nil {
				err = s.check()
			}
			if err == nil && (f.window < minWindow || f.window > maxWindow) {
				err = usage(fmt.Errorf("--window %s: must be from %s to %s", f.window, minWindow, maxWindow), "")
			}
			if err != nil {
				return err
			}
			password, err := secret("password-env", s.passwordEnv)
			if err != nil {
				return err
			}
			db, err := endpoint.NewSQL(w, database.Options{Query: s.query, Queries: s.queries, Password: password, Timeout: s.timeout})
			if err != nil {
				return usage(err, "")
			}
			return f.endpoints(c, e, db, sample.Load{Kind: "sql", Streams: s.sessions, Queries: s.queries, SQL: s.query,
				Warmup: sqlWarmup, Window: f.window.Seconds()})
		},
	}
	fl := c.Flags()
	fl.SortFlags = false
	s.add(fl)
	f.addWindow(fl)
	f.addWays(fl)
	return c
}

func (f *sqlFlags) check() error {
	for _, n := range []struct {
		flag       string
		value, top int
	}{{"queries", f.queries, maxQueries}, {"sessions", f.sessions, maxChatSessions}} {
		if n.value < 1 || n.value > n.top {
			return usage(fmt.Errorf("--%s %d: must be from 1 to %d", n.flag, n.value, n.top), "")
		}
	}
	if least := 100 * time.Millisecond; f.timeout < least || f.timeout > maxWait {
		return usage(fmt.Errorf("--timeout %s: must be from %s to %s", f.timeout, least, maxWait), "")
	}
	return nil
}
