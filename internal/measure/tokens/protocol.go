package tokens

import "bytes"

// The protocols, other than HTTP/1.1, by which a hop may be asked.
const (
	HTTP2      = "HTTP/2"
	redis      = "Redis"
	postgreSQL = "PostgreSQL"
	mySQL      = "MySQL"
)

// ProtocolOf returns by which of those protocols bytes ask that begin a request or a packet, or "".
func ProtocolOf(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte(http2Preface)), areHTTP2(b):
		return HTTP2
	case areRedis(b):
		return redis
	case arePostgres(b):
		return postgreSQL
	case areMySQL(b, false):
		return mySQL
	}
	return ""
}

// IsStore reports whether a protocol is one of databases, which answer no request for tokens.
func IsStore(protocol string) bool {
	return protocol == redis || protocol == postgreSQL || protocol == mySQL
}

// areRedis reports whether bytes begin with a command of Redis: a list, whose first element is a
// string.
func areRedis(b []byte) bool {
	list, rest, ok := bytes.Cut(b, []byte("\r\n"))
	return ok && len(list) > 1 && list[0] == '*' && len(rest) > 1 && rest[0] == '$' &&
		allDigits(list[1:])
}

func allDigits(b []byte) bool {
	return !bytes.ContainsFunc(b, func(c rune) bool { return c < '0' || c > '9' })
}
