package database

import (
	"errors"
	"net"
	"strings"
)

// A server that is not who it says must not get the password for the asking. Where
// others may listen, toll gives it away only over TLS that the DSN asks for, or if
// the DSN says so.

// errPlain says that a server wants the password in a form that reveals it to any
// server or eavesdropper.
var errPlain = errors.New("the server asks for the password in the clear")

// isLocal reports whether a host is this machine for certain, so that no other
// machine can answer or listen.
func isLocal(host string) bool {
	ip := net.ParseIP(strings.TrimSuffix(host, "."))
	return strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" || ip != nil && ip.IsLoopback()
}
