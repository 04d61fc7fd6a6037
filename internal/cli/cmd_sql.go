package cli

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/measure/database"
	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type sqlFlags struct {
	query             string
	queries, sessions int
	passwordEnv       string
	timeout           time.Duration
	places            placeFlags
}

func (f *sqlFlags) add(fl *pflag.FlagSet) {
	f.places.add(fl)
	add(fl,
		flagDef{name: "query", group: toMeasure, value: text(&f.query, ""), word: "SQL", main: "sql",
			help: "the query (default one that returns about 1 KiB and reads no table)"},
		flagDef{name: secretFlag, group: toMeasure, value: text(&f.passwordEnv, ""), word: "VARIABLE",
			help: "environment variable that holds the password (PostgreSQL's PGPASSWORD and ~/.pgpass are read anyway)",
			main: "sql"},
		sessionsOf(&f.sessions),
		flagDef{name: "queries", group: toSend, value: wholeFlag(&f.queries, 20, 1, workload.MaxQueries),
			help: "queries of a page, one after another", main: "sql"},
		flagDef{name: "timeout", group: howLong, value: timeFlag(&f.timeout, 10*time.Second, minWait, maxWait),
			help: "longest time for a login and for a page"})
}

const (
	sqlWarmup  = 0.05
	secretFlag = "secret-env"
)

func newSQL(e env) *cobra.Command {
	var (
		f runFlags
		s sqlFlags
	)
	c := &cobra.Command{
		Use:   "sql [NAME=]URL…",
		Short: "What does the route to a database cost a page of queries?",
		Long: `sql sends pages of small queries to a real database, one after another on one
connection, over each route to it, in shuffled rounds, and compares how long pages
take. Each URL (postgres:// mysql:// sqlserver://) is another route to the same
database, such as its published port and its container's address.

Passwords are never taken from the command line, where every user of the machine
can read them.`,
		Example: `  toll sql direct=postgres://app@172.17.0.2:5432/shop \
      published=postgres://app@127.0.0.1:5432/shop
  toll sql mysql://app@10.0.0.5/shop --secret-env DB_PASSWORD \
      --query 'SELECT * FROM items LIMIT 10'`,
		RunE: func(c *cobra.Command, args []string) error {
			const example = "toll sql direct=postgres://app@172.17.0.2:5432/shop published=postgres://app@127.0.0.1:5432/shop"
			w, err := parseEndpoints(args, "sql", "URL", example)
			if err != nil {
				return err
			}
			password, err := secret(secretFlag, s.passwordEnv)
			if err != nil {
				return err
			}
			db, from, err := s.places.ask(c.Flags(),
				endpoint.Client{SQL: &database.Options{
					Query: s.query, Queries: s.queries, Password: password, Timeout: s.timeout},
					Locate: locateServers()}, w, "")
			if err != nil {
				return err
			}
			l := sample.Load{Kind: workload.SQL, Streams: s.sessions,
				Options: sample.SQLOptions{Queries: s.queries, SQL: s.query}, Warmup: sqlWarmup,
				Window: f.window.Seconds()}
			return f.endpoints(c, e, db, plan.Request{Loads: []sample.Load{l}}, from)
		},
	}
	fl := c.Flags()
	s.add(fl)
	f.addWindow(fl)
	f.addEndpoints(fl)
	return c
}
