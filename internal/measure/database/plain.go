package database

import (
	"errors"
	"net"
	"strings"
)

// To another machine, a password is sent only over TLS that the DSN requires, or if the DSN allows
// clear text. Otherwise a false server could get it by asking for it.

var errPlain = errors.New("the server asks for the password in clear text")

// nameOf returns a host if it is a name, or "".
func nameOf(host string) string {
	if strings.ContainsAny(host, "/@,") || net.ParseIP(host) != nil {
		return ""
	}
	return host
}

func isLocal(host string) bool {
	ip := net.ParseIP(strings.TrimSuffix(host, "."))
	return strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" ||
		ip != nil && ip.IsLoopback()
}
