package database

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/bridgetoll/bridgetoll/internal/text/secret"
)

// parsePostgres also uses PostgreSQL's environment variables and ~/.pgpass, through pgx.
func parsePostgres(u *url.URL, password string) (target, error) {
	dsn := u.String()
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		msg, ok := strings.CutPrefix(err.Error(), "cannot parse `"+dsn+"`: ")
		if !ok {
			msg = "pgx cannot read them"
		}
		return target{}, &Error{msg: "the DSN's options: " + secret.New(password).Hide(clean(msg)),
			hint: "see PostgreSQL's manual on connection URIs, and the PG… variables of the environment"}
	}
	mode, given := cfg.RuntimeParams[execMode]
	delete(cfg.RuntimeParams, execMode)
	if given && mode != cacheStatement && mode != execAtOnce && mode != simpleProtocol {
		return target{}, &Error{msg: "the DSN's option " + execMode + " has a value that is not known",
			hint: "give " + execModes}
	}
	if password != "" {
		cfg.Password = password
	}
	cfg.ConnectTimeout = 0 // the session's also covers the login
	cfg.MaxProtocolMessageBodyLen = maxReceived
	// Open looks names up and tries their addresses.
	cfg.LookupFunc = func(_ context.Context, host string) ([]string, error) {
		return []string{host}, nil
	}
	if cfg.RequireAuth == "" && !isLocal(cfg.Host) && !alwaysTLS(cfg) {
		cfg.RequireAuth = "!password" // libpq's name for a password in clear text
	}
	_, where := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	name := nameOf(cfg.Host)
	if slices.ContainsFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != cfg.Host
	}) {
		name = ""
	}
	return target{
		where:     where,
		name:      name,
		passwords: []string{password, cfg.Password},
		plain:     "require TLS (sslmode=verify-full; sslmode=require does not check who the server is), or allow it with require_auth=password in the DSN",
		noVerify:  "sslmode=require",
		connector: func(l *link) (driver.Connector, error) {
			c := cfg.Copy()
			c.DialFunc = l.dial
			l.noteTLS(c.TLSConfig)
			for _, f := range c.Fallbacks {
				l.noteTLS(f.TLSConfig)
			}
			return postgresDriver{c, mode}, nil
		},
		alive: func(err error) (answer, bool) {
			const badPassword, cannotConnectNow = "28P01", "57P03"
			var e *pgconn.PgError
			if !errors.As(err, &e) {
				return answer{}, false
			}
			fatal := e.Severity == "FATAL" || e.Severity == "PANIC"
			return answer{after: " (SQLSTATE " + sqlState(e.Code) + ")",
				text: e.Severity + ": " + e.Message, live: !fatal, login: e.Code == badPassword,
				hint: refusedHint(e), later: e.Code == cannotConnectNow}, true
		},
	}, nil
}

// sqlState returns a code of PostgreSQL, or a question mark for what is none.
func sqlState(code string) string {
	const length = 5
	if len(code) != length || strings.ContainsFunc(code, func(r rune) bool {
		return (r < '0' || '9' < r) && (r < 'A' || 'Z' < r)
	}) {
		return "?"
	}
	return code
}

const poolerHint = "the server's connections share a session, as behind PgBouncer before 1.21 in transaction mode: append " + execMode + "=" + simpleProtocol + " to the DSN of every route"

func refusedHint(e *pgconn.PgError) string {
	const (
		invalidAuthorization, noDatabase = "28000", "3D000"
		noStatement, sameStatement       = "26000", "42P05"
	)
	switch {
	case e.Code == noDatabase:
		return databaseHint
	case e.Code == noStatement || e.Code == sameStatement:
		return poolerHint
	case e.Code != invalidAuthorization:
		return ""
	case !strings.Contains(e.Message, "pg_hba.conf"):
		return "check the user in the DSN: the server has no such role, or it may not log in this way"
	}
	hint := "the server's pg_hba.conf must allow the address that it sees over this route; a change needs SELECT pg_reload_conf()"
	if strings.Contains(e.Message, "no encryption") || strings.Contains(e.Message, "SSL off") {
		hint += "; if it allows TLS only, sslmode=require in the DSN"
	}
	return hint
}

func alwaysTLS(cfg *pgconn.Config) bool {
	return cfg.TLSConfig != nil && !slices.ContainsFunc(cfg.Fallbacks,
		func(f *pgconn.FallbackConfig) bool { return f.TLSConfig == nil })
}

// noteTLS makes connections with c, which may be nil, tell the link their TLS version. c is
// changed, because pgx finds the client's certificate by the pointer.
func (l *link) noteTLS(c *tls.Config) {
	if c == nil {
		return
	}
	before := c.VerifyConnection
	c.VerifyConnection = func(s tls.ConnectionState) error {
		l.mu.Lock()
		l.tls = tls.VersionName(s.Version)
		l.mu.Unlock()
		if before != nil {
			return before(s)
		}
		return nil
	}
}
