package secret

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// base64Letters are those of both alphabets, and the % before an escaped one.
const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_%"

// fewest is how many characters of a secret's front are hidden at the end of a text
// that was cut off; fewer tell nothing. Base64 of a shorter secret is not looked for.
const fewest = 4

// pattern is a secret, or its base64, as the spellings of each of its characters.
type pattern struct {
	plain     string
	spellings [][]string
	base64    bool
}

// patterns are a secret as it is, and in base64 where 0, 1 or 2 bytes of a group of
// three come before it.
func patterns(secret string) []pattern {
	plain := pattern{plain: secret}
	for rest := secret; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		plain.spellings = append(plain.spellings, spellings(r, rest[:n]))
		rest = rest[n:]
	}
	all := []pattern{plain}
	if len(secret) < fewest {
		return all
	}
	const bits, group = 6, 3 // of a letter; bytes that four letters hold
	for before := range group {
		b := make([]byte, before, before+len(secret))
		letters := base64.RawStdEncoding.EncodeToString(append(b, secret...))
		// Only of the letters that hold nothing else is it known which they are.
		letters = letters[(8*before+bits-1)/bits : 8*(before+len(secret))/bits]
		p := pattern{plain: letters, base64: true}
		for _, c := range letters {
			w := spellings(c, string(c))
			switch c {
			case '+':
				w = append(w, spellings('-', "-")...)
			case '/':
				w = append(w, spellings('_', "_")...)
			}
			p.spellings = append(p.spellings, w)
		}
		all = append(all, p)
	}
	return all
}

// spellings are how servers write a character: as it is and escaped.
func spellings(r rune, bytes string) []string {
	var percent, hex strings.Builder
	for i := range len(bytes) {
		fmt.Fprintf(&percent, "%%%02x", bytes[i])
		fmt.Fprintf(&hex, `\x%02x`, bytes[i])
	}
	out := []string{percent.String(), hex.String()}
	if r == utf8.RuneError && len(bytes) == 1 { // no UTF-8: what printing makes of it
		return append(out, bytes, string(utf8.RuneError))
	}
	var units strings.Builder
	for _, u := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(&units, `\u%04x`, u)
	}
	out = append(out, units.String(), fmt.Sprintf("&#%d;", r), fmt.Sprintf("&#x%x;", r))
	switch r {
	case ' ':
		out = append(out, "+")
	case '&':
		out = append(out, "&amp;")
	case '<':
		out = append(out, "&lt;")
	case '>':
		out = append(out, "&gt;")
	case '"', '\'':
		out = append(out, map[rune]string{'"': "&quot;", '\'': "&apos;"}[r], `\`+bytes)
	case '\\', '/':
		out = append(out, `\`+bytes)
	}
	return append(out, bytes)
}

// match returns how many bytes of the text are the pattern, with which it begins; 0:
// none. Of a text that is cut, its end may be the front of the pattern. The longest
// way to write a character is taken: a secret may look like an escape of another, and
// then it is found as it is.
func (p pattern) match(text string, cut bool) int {
	if n := len(p.plain); len(text) >= n && strings.EqualFold(text[:n], p.plain) {
		return n
	}
	rest := text
	for read, all := range p.spellings {
		n := 0
		for _, form := range all {
			switch {
			case len(form) <= n:
			case len(form) <= len(rest) && strings.EqualFold(form, rest[:len(form)]):
				n = len(form)
			case cut && read >= fewest && len(form) > len(rest) && strings.EqualFold(form[:len(rest)], rest):
				return len(text)
			}
		}
		if n == 0 {
			return 0
		}
		rest = rest[n:]
	}
	return len(text) - len(rest)
}
