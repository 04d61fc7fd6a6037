package openai

import (
	"net/url"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/secret"
)

const hidden = "***"

const maxText = 200 // characters

// secrets are the API key and the values of the URL's query.
type secrets struct{ secret.Set }

func newSecrets(key string, u *url.URL) secrets {
	// Shorter values of a query are versions and switches.
	const shortest = 8
	var hide []string
	// cleaned texts have this form
	add := func(s string) { hide = append(hide, s, printable.Words(s)) }
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

// clean makes one short line of a server's text. Characters are replaced before the secrets are
// looked for and never removed, which could join the parts of a secret.
func (s secrets) clean(text string) string {
	return printable.Start(s.Hide(printable.Words(text)), maxText)
}

// cleanCut does what clean does, for a text that may end within a secret.
func (s secrets) cleanCut(text string) string {
	return printable.Start(s.HideCut(printable.Words(text)), maxText)
}

// name makes one short line of a server's name for something.
func (s secrets) name(text string) string { return s.clean(text) }
