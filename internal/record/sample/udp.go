package sample

import "strings"

// UDP reports whether a load goes over UDP. Its cell has a path of its own, because rules and
// proxies are for one protocol.
func UDP(load string) bool { return strings.HasPrefix(load, "udp") }
