package program

import (
	"net/netip"
	"strconv"
	"strings"
)

// Fill says what the words in braces of a command line stand for.
type Fill struct {
	Addr    netip.AddrPort // {host}, {port} and {addr}: both, with brackets around IPv6
	Name    string         // {name}: what Addr was looked up by; "": its address
	Second  uint16         // {port2}
	Seconds int            // {seconds}
}

// The words in braces.
const (
	wordHost    = "{host}"
	wordPort    = "{port}"
	wordAddr    = "{addr}"
	wordName    = "{name}"
	wordSecond  = "{port2}"
	wordSeconds = "{seconds}"
	wordDir     = "{dir}"
)

// Into puts them into a command line. They need no quotes: none has a character
// that a shell takes for another one's.
func (f Fill) Into(command string) string {
	name := f.Name
	if name == "" {
		name = f.Addr.Addr().String()
	}
	return strings.NewReplacer(
		wordHost, f.Addr.Addr().String(),
		wordPort, strconv.Itoa(int(f.Addr.Port())),
		wordAddr, f.Addr.String(),
		wordName, name,
		wordSecond, strconv.Itoa(int(f.Second)),
		wordSeconds, strconv.Itoa(f.Seconds),
		wordDir, memoryDir,
	).Replace(command)
}

// NeedsSecond reports whether a command line asks for a second port.
func NeedsSecond(command string) bool { return strings.Contains(command, wordSecond) }
