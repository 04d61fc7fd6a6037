package sample

import "strings"

// UDP reports whether a load uses UDP. Its cell has its own path, because rules and proxies are for
// one protocol.
func UDP(load string) bool { return strings.HasPrefix(load, "udp") }
