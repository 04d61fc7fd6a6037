// Package secret hides secrets, such as keys and passwords, in foreign texts. A server's error may
// quote a request in any form.
//
//	s := secret.New("***", key)
//	fmt.Println(s.Hide(text))
//
// A secret is found unchanged, backwards, escaped (percent, JSON, Go, HTML; all of it or single
// characters), in hexadecimal and in base64 of either alphabet, also with other text around it, as
// in the credentials of HTTP's basic authentication, and over several lines. Letters' case does not
// matter.
//
// This keeps secrets out of logs. It is not a security boundary, because a server can always reveal
// a secret in another form.
package secret

import (
	"slices"
	"strings"
)

// Set is a set of secrets to hide. The zero value hides nothing.
type Set struct {
	mask     string
	patterns []pattern
}

// New returns the set of the given secrets, without empty ones. mask replaces each.
func New(mask string, secrets ...string) Set {
	s := Set{mask: mask}
	for i, secret := range secrets {
		if secret != "" && !slices.Contains(secrets[:i], secret) {
			s.patterns = append(s.patterns, patterns(secret)...)
		}
	}
	return s
}

// Hide replaces the secrets in a text.
func (s Set) Hide(text string) string { return s.hide(text, false) }

// HideCut replaces the secrets in a text that was cut off and may end within a secret.
func (s Set) HideCut(text string) string { return s.hide(text, true) }

// Has reports whether a secret is in the text.
func (s Set) Has(text string) bool {
	for i := range len(text) {
		if _, found := s.at(text[i:], false); found != nil {
			return true
		}
	}
	return false
}

func (s Set) hide(text string, cut bool) string {
	var out strings.Builder
	kept := 0
	for i := 0; i < len(text); i++ {
		n, found := s.at(text[i:], cut)
		if found == nil {
			continue
		}
		before, end := text[kept:i], i+n
		if found.base64 { // the characters around it contain bits of the secret
			before = strings.TrimRight(before, base64Letters)
			end = len(text) - len(strings.TrimLeft(text[end:], base64Letters+"="))
		}
		out.WriteString(before + s.mask)
		kept, i = end, end-1
	}
	if kept == 0 {
		return text
	}
	return out.String() + text[kept:]
}

func (s Set) at(text string, cut bool) (n int, found *pattern) {
	for i := range s.patterns {
		p := &s.patterns[i]
		if m := p.match(text, cut); m > n {
			n, found = m, p
		}
	}
	return n, found
}
