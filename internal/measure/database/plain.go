package database

import (
	"errors"
	"net"
	"strings"
)

// A server that is not the right one must not get the password by asking for it. If others may
// listen, toll sends it only over TLS that the DSN requires, or if the DSN allows it.

// errPlain means that a server wants the password in a form that reveals it to any server or
// eavesdropper.
var errPlain = errors.New("the server asks for the password in the clear")

// isLocal reports whether a host is certainly this machine, so that no other machine can answer or
// listen.
func isLocal(host string) bool {
	ip := net.ParseIP(strings.TrimSuffix(host, "."))
	return strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" || ip != nil && ip.IsLoopback()
}
