package database

import (
	"errors"
	"net"
	"strings"
)

// If others may listen, a password is sent only over TLS that the DSN requires, or if the DSN
// allows it: a false server must not get it by asking.

var errPlain = errors.New("the server asks for the password in clear text")

func isLocal(host string) bool {
	ip := net.ParseIP(strings.TrimSuffix(host, "."))
	return strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" ||
		ip != nil && ip.IsLoopback()
}
