package openai

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/secret"
)

const hidden = "***"

const maxText = 200 // characters

// secrets are the API key and the values of the URL's query.
type secrets struct {
	secret.Set
	given bool // there is one
}

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
	given := slices.ContainsFunc(hide, func(s string) bool { return s != "" })
	return secrets{secret.New(hidden, hide...), given}
}

// clean makes one short line of a server's text. Characters are replaced before the secrets are
// looked for and never removed, which could join the parts of a secret.
func (s secrets) clean(text string) string { return s.cut(s.Hide(printable.Words(text))) }

// cleanCut does what clean does, for a text that may end within a secret.
func (s secrets) cleanCut(text string) string { return s.cut(s.HideCut(printable.Words(text))) }

// name makes one short line of a server's name for something.
func (s secrets) name(text string) string {
	return printable.Start(s.Hide(printable.Words(text)), maxText)
}

func (s secrets) cut(text string) string {
	if s.given { // the server may repeat it in any coding
		text = plainWords(text)
	}
	return printable.Start(text, maxText)
}

// longestRun is the number of characters from which on a run could be a secret.
const longestRun = 16

var (
	plainWord = regexp.MustCompile(
		`^["'(\[]*(?:\*{3}|(?:[A-Z]?[a-z]+|[A-Z]+)\d{0,3}(?:['_-](?:[a-z]+|[A-Z][a-z]*|[A-Z]+))*|\d{1,6})["')\].,:;!?]*$`)
	longWord = regexp.MustCompile(`[A-Za-z]{4}`)
)

// plainWords replaces what is no plain word or number by its length, and runs of short words that
// are together longer than longestRun. Words with four letters in sequence end a run.
func plainWords(text string) string {
	var out, run []string
	flush := func() {
		if n := len([]rune(strings.Join(run, ""))); n > longestRun {
			out, run = append(out, lengthOf(n)), nil
		}
		for _, w := range run {
			if !plainWord.MatchString(w) {
				w = lengthOf(len([]rune(w)))
			}
			out = append(out, w)
		}
		run = nil
	}
	for _, w := range strings.Fields(text) {
		switch {
		case len(w) <= longestRun && plainWord.MatchString(w) &&
			(longWord.MatchString(w) || strings.Contains(w, hidden)):
			flush()
			out = append(out, w)
		default:
			run = append(run, w)
		}
	}
	flush()
	return strings.Join(out, " ")
}

func lengthOf(n int) string { return fmt.Sprintf("[%d characters]", n) }
