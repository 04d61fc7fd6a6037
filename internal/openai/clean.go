package openai

import (
	"net/url"

	"github.com/bridgetoll/bridgetoll/internal/printable"
	"github.com/bridgetoll/bridgetoll/internal/secret"
)

// hidden is shown for what must not be.
const hidden = "***"

// maxText is how much of a text of the server is shown, in characters.
const maxText = 200

// secrets are what must not be printed: the API key and the values of the URL's
// query.
type secrets struct{ secret.Set }

func newSecrets(key string, u *url.URL) secrets {
	// Shorter values of a query are versions and switches, and no secrets.
	const shortest = 8
	var hide []string
	add := func(s string) { hide = append(hide, s, printable.Words(s)) } // as it stands in a cleaned text
	add(key)
	for _, values := range u.Query() {
		for _, v := range values {
			if len(v) >= shortest {
				add(v)
			}
		}
	}
	return secrets{secret.New(hidden, hide...)}
}

// clean makes one short line out of a text of the server. Characters are replaced
// before the secrets are looked for and never taken out, which could put a secret
// together: of white space a space stays.
func (s secrets) clean(text string) string { return shorten(s.Hide(printable.Words(text))) }

// cleanCut is clean for a text whose end is missing.
func (s secrets) cleanCut(text string) string { return shorten(s.HideCut(printable.Words(text))) }

func shorten(text string) string {
	n := 0
	for i := range text {
		if n++; n > maxText {
			return text[:i] + "…"
		}
	}
	return text
}
