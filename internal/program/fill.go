package program

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Fill says what the words in braces of a command line stand for.
type Fill struct {
	Addr    netip.AddrPort // {host}, {port} and {addr}: both, with brackets around IPv6
	Second  uint16         // {port2}
	Seconds int            // {seconds}
}

// The words in braces.
const (
	wordHost    = "{host}"
	wordPort    = "{port}"
	wordAddr    = "{addr}"
	wordSecond  = "{port2}"
	wordSeconds = "{seconds}"
	wordDir     = "{dir}"
)

var words = []string{wordHost, wordPort, wordAddr, wordSecond, wordSeconds, wordDir}

// Into puts them into a command line. They need no quotes: none has a character
// that a shell takes for another one's.
func (f Fill) Into(command string) string {
	return strings.NewReplacer(
		wordHost, f.Addr.Addr().String(),
		wordPort, strconv.Itoa(int(f.Addr.Port())),
		wordAddr, f.Addr.String(),
		wordSecond, strconv.Itoa(int(f.Second)),
		wordSeconds, strconv.Itoa(f.Seconds),
		wordDir, Dir,
	).Replace(command)
}

var braced = regexp.MustCompile(`\{[a-z]+[0-9]?\}`)

// CheckWords refuses a command line with a word in braces that stands for nothing.
// ${name} is the shell's.
func CheckWords(command string) error {
	known := strings.NewReplacer(append(pairs(words), pairs(shellWords(command))...)...).Replace(command)
	if w := braced.FindString(known); w != "" {
		return fmt.Errorf("%s stands for nothing; there are: %s", w, strings.Join(words, " "))
	}
	return nil
}

func shellWords(command string) (out []string) {
	for _, w := range braced.FindAllString(command, -1) {
		out = append(out, "$"+w)
	}
	return out
}

// pairs are the words, each to be replaced by nothing.
func pairs(words []string) (out []string) {
	for _, w := range words {
		out = append(out, w, "")
	}
	return out
}

// NeedsSecond reports whether a command line asks for a second port.
func NeedsSecond(command string) bool { return strings.Contains(command, wordSecond) }
