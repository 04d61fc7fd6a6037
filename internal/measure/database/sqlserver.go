package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/bridgetoll/bridgetoll/internal/text/secret"
)

func parseSQLServer(u *url.URL, password string) (target, error) {
	if strings.Trim(u.Path, "/") != "" {
		return target{},
			&Error{
				msg: "the DSN has a path, which for SQL Server is an instance's name and would be looked up over UDP", hint: "name the port, and the database as ?database=NAME"}
	}
	v := *u
	v.Path = ""
	q := v.Query()
	chosen := slices.ContainsFunc(slices.Collect(maps.Keys(q)), aboutTLS)
	guarded := password != "" && !isLocal(v.Hostname())
	if guarded && !chosen {
		// The login is in TLS anyway. The driver's default accepts any certificate.
		q.Set("TrustServerCertificate", "false")
		v.RawQuery = q.Encode()
	}
	cfg, err := msdsn.Parse(v.String())
	if err != nil {
		return target{}, &Error{msg: "the DSN's options: " + secret.New(password).Hide(clean(err.Error())),
			hint: "see the manual of github.com/microsoft/go-mssqldb on parameters"}
	}
	cfg.Password = password
	cfg.DialTimeout = -1 // the session's also covers the login
	cfg.DisableRetry = true
	if cfg.Port == 0 {
		cfg.Port = 1433
	}
	return target{
		where:     net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port)),
		name:      nameOf(cfg.Host),
		passwords: []string{password},
		plain:     "let the server have a certificate, or allow it with encrypt=disable in the DSN",
		noVerify:  "TrustServerCertificate=true",
		connector: func(l *link) (driver.Connector, error) {
			p := cfg
			p.TLSConfig = p.TLSConfig.Clone()
			l.noteTLS(p.TLSConfig)
			c := mssql.NewConnectorConfig(p)
			c.Dialer = hostDialer{l, p.Host}
			if guarded && p.Encryption != msdsn.EncryptionDisabled {
				l.leaks = tellsSQLServer
			}
			return c, nil
		},
		alive: func(err error) (answer, bool) {
			const loginFailed, noDatabase = 18456, 4060
			var e mssql.Error
			if !errors.As(err, &e) {
				return answer{}, false
			}
			hint := ""
			if e.Number == noDatabase {
				hint = databaseHint
			}
			return answer{before: fmt.Sprintf("error %d: ", e.Number), text: e.Message, live: true,
				login: e.Number == loginFailed, hint: hint}, true
		},
	}, nil
}

func aboutTLS(key string) bool {
	switch strings.ReplaceAll(strings.ToLower(key), " ", "") {
	case "encrypt", "trustservercertificate":
		return true
	}
	return false
}

// tellsSQLServer returns an error for a login without TLS, in which the password is only disguised.
func tellsSQLServer(out []byte) error {
	const login7 = 0x10 // the type of its packets
	if len(out) > 0 && out[0] == login7 {
		return errPlain
	}
	return nil
}

// hostDialer looks names up itself, because the driver would do it without a time limit.
type hostDialer struct {
	link *link
	host string
}

var _ mssql.HostDialer = hostDialer{}

func (d hostDialer) HostName() string { return d.host }

func (d hostDialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.link.dial(ctx, network, addr)
}
