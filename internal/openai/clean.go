package openai

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/printable"
)

// hidden is shown for what must not be.
const hidden = "***"

// maxText is how much of a text of the server is shown, in characters.
const maxText = 200

// secrets are what must not be printed: the API key and the values of the URL's
// query, each as it is and as a server may quote it.
type secrets struct {
	forms []string // the longest first
	any   *regexp.Regexp
}

func newSecrets(key string, u *url.URL) secrets {
	// Shorter values of a query are versions and switches, and no secrets.
	const shortest = 8
	var s secrets
	if key != "" {
		s.add(key)
	}
	for _, values := range u.Query() {
		for _, v := range values {
			if len(v) >= shortest {
				s.add(v)
			}
		}
	}
	if len(s.forms) == 0 {
		return s
	}
	slices.SortFunc(s.forms, func(a, b string) int { return len(b) - len(a) })
	var quoted []string
	for _, f := range slices.Compact(s.forms) {
		quoted = append(quoted, regexp.QuoteMeta(f))
	}
	s.any = regexp.MustCompile("(?i)" + strings.Join(quoted, "|"))
	return s
}

func (s *secrets) add(secret string) {
	asJSON, _ := json.Marshal(secret) // a string can always be
	inner := func(q string) string { return q[1 : len(q)-1] }
	s.forms = append(s.forms, secret, printable.Words(secret), url.QueryEscape(secret), url.PathEscape(secret), html.EscapeString(secret),
		inner(strconv.Quote(secret)), inner(string(asJSON)))
}

// scrub hides the secrets in a text.
func (s secrets) scrub(text string) string {
	if s.any == nil {
		return text
	}
	return s.any.ReplaceAllLiteralString(text, hidden)
}

// scrubCut is scrub for a text whose end is missing, and which may thus end in the
// front of a secret.
func (s secrets) scrubCut(text string) string {
	text = s.scrub(text)
	const fewest = 4 // characters that tell nothing
	for _, f := range s.forms {
		for n := min(len(f)-1, len(text)); n >= fewest; n-- {
			if strings.EqualFold(text[len(text)-n:], f[:n]) {
				return text[:len(text)-n] + hidden
			}
		}
	}
	return text
}

// clean makes one short line out of a text of the server. Characters are replaced
// before the secrets are looked for and never taken out, which could put a secret
// together: of white space a space stays.
func (s secrets) clean(text string) string { return shorten(s.scrub(printable.Words(text))) }

// cleanCut is clean for a text whose end is missing.
func (s secrets) cleanCut(text string) string { return shorten(s.scrubCut(printable.Words(text))) }

func shorten(text string) string {
	n := 0
	for i := range text {
		if n++; n > maxText {
			return text[:i] + "…"
		}
	}
	return text
}
