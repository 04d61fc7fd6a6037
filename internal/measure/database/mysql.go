package database

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/bridgetoll/bridgetoll/internal/text/secret"
)

// parseMySQL converts the URL to a DSN of the driver, which reads its options only from that.
func parseMySQL(u *url.URL, password string) (target, error) {
	q := u.Query()
	var network, addr string
	if socket := q.Get("socket"); socket != "" {
		network, addr = "unix", socket
		if strings.ContainsAny(addr, "()@?") {
			return target{}, &Error{msg: "the DSN's socket path has characters " +
				"that are not allowed",
				hint: "give the socket's path, from /"}
		}
	} else {
		port := u.Port()
		if port == "" {
			port = "3306"
		}
		network, addr = "tcp", net.JoinHostPort(u.Hostname(), port)
	}
	q.Del("socket")
	var options []string
	for key := range q {
		// The driver does not decode some values, which contain at most a comma.
		options = append(options, key+"="+strings.ReplaceAll(
			url.QueryEscape(q.Get(key)), "%2C", ","))
	}
	cfg, err := mysql.ParseDSN(network + "(" + addr + ")/?" + strings.Join(options, "&"))
	if err != nil {
		return target{}, &Error{msg: "the DSN's options: " + secret.New(password).Hide(clean(err.Error())),
			hint: "see the manual of github.com/go-sql-driver/mysql on parameters"}
	}
	cfg.User, cfg.Passwd, cfg.DBName = u.User.Username(), password, strings.TrimPrefix(u.Path, "/")
	cfg.Timeout = 0 // the session's also covers the login
	cfg.Logger = &mysql.NopLogger{}
	host, _, _ := net.SplitHostPort(addr)
	guarded := network == "tcp" && !isLocal(host) && password != "" && !cfg.AllowCleartextPasswords
	name := ""
	if network == "tcp" {
		name = nameOf(host)
	}
	return target{
		where:     addr,
		name:      name,
		passwords: []string{password},
		plain:     "require TLS (tls=true), or allow it with allowCleartextPasswords=true in the DSN",
		noVerify:  "tls=skip-verify",
		connector: func(l *link) (driver.Connector, error) {
			c := cfg.Clone()
			c.DialFunc = l.dial
			l.noteTLS(c.TLS)
			l.hostile = manyColumns
			if guarded {
				l.leaks = tellsMySQL
			}
			return mysql.NewConnector(c)
		},
		alive: mysqlAnswer,
	}, nil
}

func mysqlAnswer(err error) (answer, bool) {
	const (
		accessDenied           = 1045
		accessDeniedNoPassword = 1698
		databaseDenied         = 1044
		noDatabase             = 1049
		hostDenied             = 1130
	)
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return answer{}, false
	}
	hint := ""
	switch e.Number {
	case databaseDenied, noDatabase:
		hint = databaseHint
	case hostDenied:
		hint = "the server must allow a user from the address that it sees over this route: CREATE USER 'app'@'ADDRESS'"
	}
	return answer{before: fmt.Sprintf("ERROR %d: ", e.Number),
		// 'app'@'172.17.0.1' in words
		text: strings.ReplaceAll(e.Message, "'@'", "' at '"), live: true,
		login: e.Number == accessDenied || e.Number == accessDeniedNoPassword, hint: hint}, true
}

// manyColumns refuses a result that declares more than 65535 columns, because the driver would
// allocate them.
func manyColumns(answer []byte) error {
	const (
		first    = 1    // the number of an answer's first packet
		threeLen = 0xfd // the number of columns takes three bytes,
		eightLen = 0xfe // or eight
	)
	if answer[3] == first && (answer[4] == threeLen || answer[4] == eightLen) {
		return errColumns
	}
	return nil
}

// tellsMySQL returns an error for an answer to the server's challenge, unless its length is that of
// one that does not reveal the password. Others may be in the clear, or encrypted with the server's
// key.
func tellsMySQL(out []byte) error {
	const (
		header   = 4
		response = 1 // the number of the packet that answers the greeting
		native   = 20
		sha2     = 32
		ed25519  = 64
	)
	if len(out) < header || out[3] <= response {
		return nil
	}
	switch len(out) - header {
	case 0, native, sha2, ed25519:
		return nil
	}
	return errPlain
}
