package openai

import (
	"net/url"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/secret"
)

const maxText = 200 // characters

// secrets are the API key and the values of the URL's query.
type secrets struct{ secret.Set }

// newSecrets returns the secrets of a key and a URL. Their texts show the URL, also with the other
// scheme or a slash at its end, to which servers redirect, and the given model.
func newSecrets(key string, u *url.URL, model string) secrets {
	// Shorter values of a query are versions and switches.
	const shortest = 8
	hide := []string{key}
	for _, values := range u.Query() {
		for _, v := range values {
			if len(v) >= shortest {
				hide = append(hide, v)
			}
		}
	}
	at := url.URL{Host: u.Host, Path: u.Path + "/"}
	return secrets{secret.New(hide...).Showing("http:"+at.String(), "https:"+at.String(), model)}
}

// clean makes one short line of a server's text.
func (s secrets) clean(text string) string { return printable.Start(s.Words(text), maxText) }

// cleanCut does what clean does, for a text that may end within a secret.
func (s secrets) cleanCut(text string) string { return printable.Start(s.CutWords(text), maxText) }

// name makes one short line of a server's name for something.
func (s secrets) name(text string) string {
	return printable.Start(s.Hide(printable.Words(text)), maxText)
}
