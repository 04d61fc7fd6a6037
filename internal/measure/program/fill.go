package program

import (
	"net/netip"
	"strconv"
	"strings"
)

// Fill has the values of the words in braces of a command line.
type Fill struct {
	Addr    netip.AddrPort // {host}, {port} and {addr}: both, with brackets around IPv6
	Name    string         // {name}, which was resolved to Addr; "": its address
	Second  uint16         // {port2}
	Seconds int            // {seconds}
}

const (
	wordHost    = "{host}"
	wordPort    = "{port}"
	wordAddr    = "{addr}"
	wordName    = "{name}"
	wordSecond  = "{port2}"
	wordSeconds = "{seconds}"
	wordDir     = "{dir}"
)

// Into replaces the words in a command line. The values have no characters that are special to a
// shell.
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

// NeedsSecond reports whether a command line has {port2}.
func NeedsSecond(command string) bool { return strings.Contains(command, wordSecond) }
