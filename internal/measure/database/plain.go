package database

import (
	"errors"
	"net"
	"strings"
)

// A server that is not the right one must not get the password by asking for it. If others may
// listen, it is sent only over TLS that the DSN requires, or if the DSN allows it.

var errPlain = errors.New("the server asks for the password in the clear")

// isLocal reports whether a host is certainly this machine.
func isLocal(host string) bool {
	ip := net.ParseIP(strings.TrimSuffix(host, "."))
	return strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" || ip != nil && ip.IsLoopback()
}
