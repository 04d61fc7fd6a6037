package secret

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// base64Letters has the letters of both alphabets, and the % that begins a percent escape.
const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_%"

// fewest is the least number of characters at the front of a secret that are hidden at the end of a
// cut text. Shorter secrets are searched only forwards, and without white space in between.
const fewest = 4

// pattern is a secret, or its base64, as the possible spellings of each character.
type pattern struct {
	plain     string
	spellings [][]string
	base64    bool
}

// patterns returns the patterns of a secret: forwards and, unless it is short, backwards, in
// hexadecimal and in base64. In base64, 0, 1 or 2 bytes of a group of three may precede the secret.
func patterns(secret string) []pattern {
	all := []pattern{spelled(secret)}
	if len(secret) < fewest {
		return all
	}
	all = append(all, spelled(reversed(secret)), inHex(secret))
	const bits, group = 6, 3 // bits of a letter; bytes in four letters
	for before := range group {
		b := make([]byte, before, before+len(secret))
		letters := base64.RawStdEncoding.EncodeToString(append(b, secret...))
		// The letters at the ends contain bits of the neighbours.
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

func spelled(text string) pattern {
	p := pattern{plain: text}
	for rest := text; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		p.spellings = append(p.spellings, spellings(r, rest[:n]))
		rest = rest[n:]
	}
	return p
}

func reversed(text string) string {
	var out strings.Builder
	for text != "" {
		_, n := utf8.DecodeLastRuneInString(text)
		out.WriteString(text[len(text)-n:])
		text = text[:len(text)-n]
	}
	return out.String()
}

// inHex returns the pattern of a text in hexadecimal. A colon or a dash may separate the bytes.
func inHex(text string) pattern {
	p := pattern{plain: hex.EncodeToString([]byte(text))}
	for i := range len(text) {
		digits := hex.EncodeToString([]byte{text[i]})
		forms := []string{digits}
		if i > 0 {
			forms = append(forms, ":"+digits, "-"+digits)
		}
		p.spellings = append(p.spellings, forms)
	}
	return p
}

func spellings(r rune, bytes string) []string {
	var percent, escaped strings.Builder
	for i := range len(bytes) {
		fmt.Fprintf(&percent, "%%%02x", bytes[i])
		fmt.Fprintf(&escaped, `\x%02x`, bytes[i])
	}
	out := []string{percent.String(), escaped.String()}
	if r == utf8.RuneError && len(bytes) == 1 { // not UTF-8
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

// match returns the number of bytes at the beginning of the text that match, including white space
// between characters, or 0. If the text is cut, its end may match the front of the pattern.
func (p pattern) match(text string, cut bool) int {
	if n := len(p.plain); len(text) >= n && strings.EqualFold(text[:n], p.plain) {
		return n
	}
	ends := []int{0} // where the characters so far may end in the text
	for read, forms := range p.spellings {
		var next []int
		for _, begin := range ends {
			begins := []int{begin}
			if read > 0 && len(p.spellings) >= fewest {
				if n := gap(text[begin:]); n > 0 {
					begins = append(begins, begin+n)
				}
			}
			for _, i := range begins {
				for _, form := range forms {
					switch rest := text[i:]; {
					case len(form) <= len(rest) && strings.EqualFold(form, rest[:len(form)]):
						if end := i + len(form); !slices.Contains(next, end) {
							next = append(next, end)
						}
					case cut && read >= fewest && len(form) > len(rest) &&
						strings.EqualFold(form[:len(rest)], rest):
						return len(text)
					}
				}
			}
		}
		if len(next) == 0 {
			return 0
		}
		ends = next
	}
	return slices.Max(ends)
}

// gap returns the number of bytes of white space at the beginning of the text, including escaped
// line breaks.
func gap(text string) int {
	rest := text
	for {
		after := strings.TrimLeftFunc(rest, unicode.IsSpace)
		for _, end := range []string{`\r`, `\n`} {
			after = strings.TrimPrefix(after, end)
		}
		if len(after) == len(rest) {
			return len(text) - len(rest)
		}
		rest = after
	}
}
