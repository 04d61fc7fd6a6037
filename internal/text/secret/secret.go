// Package secret keeps keys and passwords out of the texts of servers that were given them.
//
//	s := secret.New(key)
//	fmt.Println(s.Words(text))
//
// A server may quote a request in any coding, so that no list of codings is complete. Of its texts,
// only words, numbers and addresses are therefore kept, and what the user wrote in the open. This
// keeps secrets out of logs. It is not a security boundary, because a server can always reveal a
// secret in another form.
package secret

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Mask is what replaces a secret.
const Mask = "***"

const (
	// shortest is the number of characters from which on a secret is replaced. Replacing a shorter
	// one would reveal it.
	shortest = 4
	// longestRun is the number of characters from which on a run could be a secret.
	longestRun = 16
)

// Set is a set of secrets. The zero value hides nothing.
type Set struct {
	secrets []string
	hide    *regexp.Regexp // nil: no secret is long enough
	open    string
}

// New returns the set of the given secrets, without empty ones.
func New(secrets ...string) Set {
	var s Set
	var long []string
	for _, text := range secrets {
		text = printable.Words(text)
		if text != "" {
			s.secrets = append(s.secrets, text)
		}
		if utf8.RuneCountInString(text) >= shortest {
			long = append(long, regexp.QuoteMeta(text))
		}
	}
	// The first that matches counts.
	slices.SortFunc(long, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	if len(long) > 0 {
		s.hide = regexp.MustCompile("(?i)" + strings.Join(long, "|"))
	}
	return s
}

// Showing returns the set for texts in which words of what the user wrote in the open are kept.
func (s Set) Showing(open ...string) Set {
	s.open = strings.Join(open, " ")
	return s
}

// Hide replaces the secrets that are in a printable text as they are, in any case.
func (s Set) Hide(text string) string {
	if s.hide == nil {
		return text
	}
	return s.hide.ReplaceAllLiteralString(text, Mask)
}

// Words returns a server's text on one line. If there is a secret, what is no plain word, number or
// address is replaced by its length.
func (s Set) Words(text string) string {
	text = s.Hide(printable.Words(text))
	for _, short := range s.secrets {
		if utf8.RuneCountInString(short) < shortest &&
			strings.Contains(strings.ToLower(text), strings.ToLower(short)) {
			return "the message is not shown because it contains the secret"
		}
	}
	if len(s.secrets) == 0 {
		return text
	}
	return s.plain(text)
}

// CutWords does what Words does, for a text that was cut off and may end within a secret.
func (s Set) CutWords(text string) string {
	text = printable.Words(text)
	for _, hidden := range s.secrets {
		for n := len(hidden) - 1; n >= shortest; n-- {
			if front := hidden[:n]; strings.HasSuffix(text, front) {
				text = strings.TrimSuffix(text, front) + Mask
				break
			}
		}
	}
	return s.Words(text)
}

var (
	plainWord = regexp.MustCompile(`^(?:\*{3}|\d{1,6}|\d{1,3}(?:\.\d{1,3}){3}|` +
		`(?:[A-Z]?[a-z]+|[A-Z]+)\d{0,3}(?:['_-](?:[a-z]+|[A-Z][a-z]*|[A-Z]+))*)$`)
	longWord = regexp.MustCompile(`[A-Za-z]{4}|\*{3}`)
)

const (
	opening = `"'([`
	closing = `"')].,:;!?`
)

// plain replaces words that are not plain, and runs of short words that are together longer than
// longestRun. Words with four letters in sequence end a run.
func (s Set) plain(text string) string {
	var out, run []string
	flush := func() {
		const least = 3 // characters that a word counts for, because codings have many short ones
		length, counted := 0, 0
		for _, w := range run {
			length += utf8.RuneCountInString(w)
			counted += max(least, lettersIn(w))
		}
		switch {
		case counted > longestRun:
			out = append(out, lengthOf(length))
		default:
			for _, w := range run {
				if !plainWord.MatchString(bare(w)) {
					w = lengthOf(utf8.RuneCountInString(w))
				}
				out = append(out, w)
			}
		}
		run = nil
	}
	for _, w := range strings.Fields(text) {
		switch {
		case s.keeps(bare(w)):
			flush()
			out = append(out, w)
		case utf8.RuneCountInString(w) > longestRun && !plainWord.MatchString(bare(w)):
			flush()
			out = append(out, lengthOf(utf8.RuneCountInString(w)))
		default:
			run = append(run, w)
		}
	}
	flush()
	return strings.Join(out, " ")
}

// keeps reports whether a word is shown whatever is around it.
func (s Set) keeps(word string) bool {
	return len(word) >= shortest && strings.Contains(s.open, word) ||
		len(word) <= longestRun && plainWord.MatchString(word) && longWord.MatchString(word)
}

func bare(word string) string {
	return strings.TrimRight(strings.TrimLeft(word, opening), closing)
}

func lettersIn(word string) (n int) {
	for _, r := range word {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

func lengthOf(n int) string { return fmt.Sprintf("[%d characters]", n) }
