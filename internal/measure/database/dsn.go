package database

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	urlHint      = "write it as postgres://USER@HOST:PORT/DATABASE, mysql://USER@HOST:PORT/DATABASE or sqlserver://USER@HOST:PORT?database=DATABASE"
	passwordHint = "put the password in an environment variable and name that with --secret-env; PostgreSQL's PGPASSWORD and ~/.pgpass work too"
)

// parseDSN parses and checks a DSN. Its errors quote no part that can contain a password, which may
// be anywhere in a malformed DSN.
func parseDSN(dsn string) (product, *url.URL, error) {
	scheme, rest, ok := strings.Cut(dsn, "://")
	if !ok {
		return product{}, nil, &Error{msg: "the DSN is not a URL", hint: urlHint}
	}
	p, ok := findProduct(strings.ToLower(scheme))
	if !ok {
		return product{}, nil, &Error{msg: "the DSN's scheme is not one of " + schemes(),
			hint: urlHint}
	}
	// A parser would take a password for a port, a path or an option.
	if end := strings.IndexAny(rest, "/?#"); end >= 0 && strings.ContainsAny(rest[end:], "@#") {
		return product{}, nil, &Error{msg: "the DSN has an @ or a # after its host",
			hint: "write %40 and %23 there; if they belong to a password: " + passwordHint}
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return product{}, nil, &Error{msg: "the DSN cannot be read as a URL", hint: urlHint}
	}
	if strings.ContainsAny(u.EscapedPath(), "=&") { // options without their ?
		return product{}, nil, &Error{msg: "the DSN has an = or a & in its database's name",
			hint: "options begin with a ?: …/DATABASE?name=value; in a name write %3D and %26"}
	}
	if _, is := u.User.Password(); is {
		return product{}, nil,
			&Error{
				msg: "the DSN contains a password, which every user of this machine could see in the process list", hint: passwordHint}
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return product{}, nil, &Error{msg: "the DSN's query string cannot be read",
			hint: "write it as ?name=value&name=value, with %3B for a semicolon"}
	}
	if err := checkQuery(p, q); err != nil {
		return product{}, nil, err
	}
	if err := checkHost(p, u, q); err != nil {
		return product{}, nil, err
	}
	return p, u, nil
}

func checkQuery(p product, q url.Values) error {
	for key, values := range q {
		if secretKey(key) {
			return &Error{
				msg: "the DSN's query string contains a password or another secret, which every user of this machine could see in the process list", hint: passwordHint}
		}
		if strings.ContainsFunc(key, func(r rune) bool { return !plainKey(r) }) {
			return &Error{msg: "an option's name in the DSN's query string " +
				"has characters that are not allowed",
				hint: "a name may have letters, digits, blanks and _ . -"}
		}
		if why, is := p.refused[strings.ToLower(key)]; is {
			return &Error{msg: fmt.Sprintf("the DSN's option %s cannot be used: %s", key, why),
				hint: "leave it out"}
		}
		if len(values) > 1 {
			return &Error{msg: fmt.Sprintf("the DSN has the option %s %d times", key, len(values)),
				hint: "give it once"}
		}
	}
	return nil
}

func plainKey(r rune) bool {
	return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) ||
		strings.ContainsRune(" _.-", r))
}

// checkHost returns an error unless the DSN names one route to one server.
func checkHost(p product, u *url.URL, q url.Values) error {
	host, port := u.Hostname(), u.Port()
	elsewhere := ""
	if p.hostKey != "" {
		elsewhere = q.Get(p.hostKey)
	}
	switch {
	case host == "" && elsewhere == "":
		return &Error{msg: "the DSN names no host", hint: urlHint}
	case host != "" && elsewhere != "":
		return &Error{msg: fmt.Sprintf("the DSN names a host and the option %s", p.hostKey),
			hint: "name one of them"}
	case strings.ContainsAny(host+elsewhere, ",;()'\"` \\"):
		return &Error{msg: "the DSN's host is not one name or address",
			hint: "each host is a path of its own: name one"}
	case p.socketOnly && elsewhere != "" && !strings.HasPrefix(elsewhere, "/"):
		return &Error{msg: fmt.Sprintf("the DSN's option %s is not a path", p.hostKey),
			hint: "give the socket's path, from /"}
	case strings.HasSuffix(u.Host, ":"):
		return &Error{msg: "the DSN's port is missing after the colon", hint: urlHint}
	case port == "":
		port = q.Get("port")
	}
	if port == "" {
		return nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return &Error{msg: "the DSN's port is not from 1 to 65535", hint: urlHint}
	}
	return nil
}

// Parts of the names of secret options.
var secretWords = []string{"pass", "pwd", "secret", "token", "credential"}

// Parts of the names of options that are not printed.
var maybeWords = []string{"key", "auth"}

// Options whose names have such parts, but whose values are not secret.
var noSecret = []string{"passfile", "keepalive", "sslkey", "requireauth", "serverpubkey",
	"authenticator", "allowcleartextpasswords", "allownativepasswords", "allowoldpasswords"}

func secretKey(key string) bool { return sounds(key, secretWords) }

func sounds(key string, words []string) bool {
	key = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, key)
	return !slices.Contains(noSecret, key) &&
		slices.ContainsFunc(words, func(w string) bool { return strings.Contains(key, w) })
}

func redactQuery(raw string) string {
	if raw == "" {
		return ""
	}
	parts := strings.Split(raw, "&")
	for i, p := range parts {
		name, _, _ := strings.Cut(p, "=")
		key, err := url.QueryUnescape(name)
		if err != nil || secretKey(key) || sounds(key, maybeWords) {
			parts[i] = name + "=xxxxx"
		}
	}
	return strings.Join(parts, "&")
}
