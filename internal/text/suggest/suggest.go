// Package suggest finds words of a closed list that resemble an unknown word, because it differs in
// case or by typing errors, or is unfinished.
package suggest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

const most = 3

// Words returns at most three of the known words that word may mean, the likeliest first: one that
// differs only in case, else those with few typing errors, then those that begin with it.
func Words(word string, known []string) []string {
	lower := strings.ToLower(strings.TrimSpace(word))
	if lower == "" || len(lower) > longest {
		return nil
	}
	type match struct {
		word  string
		slips int
	}
	var found []match
	for _, k := range known {
		low := strings.ToLower(k)
		switch n := slips(lower, low); {
		case n == 0:
			return []string{k}
		case n <= forgiven(lower, low):
			found = append(found, match{k, n})
		case len(lower) >= beginning && strings.HasPrefix(low, lower):
			found = append(found, match{k, len(low)}) // after all typing errors
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Compare(a.slips, b.slips) })
	var out []string
	for _, m := range found[:min(most, len(found))] {
		out = append(out, m.word)
	}
	return out
}

const (
	longest   = 100 // bytes; for longer words nothing is suggested
	beginning = 2   // least bytes of an unfinished word
)

// forgiven returns the number of typing errors that are accepted: a third of the letters, at most
// three.
func forgiven(a, b string) int {
	const share, atMost = 3, 3
	return min(atMost, max(len(a), len(b))/share)
}

// slips returns the optimal string alignment distance: the number of letters left out, added,
// changed or swapped with the next.
func slips(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range y {
			changed := 1
			if x[i] == y[j] {
				changed = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+changed)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(y)]
}

// UnknownError reports words that are not on a closed list.
type UnknownError struct {
	What  string   // "mode", "placement", …
	Words []string // at least one
	Known []string
}

func (e *UnknownError) Error() string {
	quoted := make([]string, len(e.Words))
	for i, w := range e.Words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	what := e.What
	if len(quoted) > 1 {
		what = e.plural()
	}
	return "unknown " + what + " " + strings.Join(quoted, ", ")
}

// plural returns What with its first word, the noun, in the plural.
func (e *UnknownError) plural() string {
	noun, rest, more := strings.Cut(e.What, " ")
	if more {
		rest = " " + rest
	}
	return units.Plurals(noun) + rest
}

// Unlike reports whether one of the words resembles no word of the list.
func (e *UnknownError) Unlike() bool {
	return slices.ContainsFunc(e.Words, func(w string) bool { return e.meant(w) == "" })
}

// Hint returns what was probably meant, or the list.
func (e *UnknownError) Hint() string {
	var meant []string
	for _, w := range e.Words {
		near := e.meant(w)
		if near == "" {
			return e.all()
		}
		if !slices.Contains(meant, near) {
			meant = append(meant, near)
		}
	}
	return "did you mean " + strings.Join(meant, ", ") + "?"
}

// listings maps kinds of long lists to the command that shows the list.
var listings = map[string]string{"mode": "toll modes"}

const mostListed = 20

func (e *UnknownError) all() string {
	if by := listings[e.What]; by != "" && len(e.Known) > mostListed {
		return by + " lists all " + e.plural()
	}
	return e.plural() + " are: " + strings.Join(e.Known, ", ")
}

// meant returns the words that word may mean: one, several ("a or b"), or, if word is a list with
// commas, one for each of its parts, separated by spaces. It returns "" if nothing resembles it.
func (e *UnknownError) meant(word string) string {
	if to := said(e.What, strings.ToLower(word), e.Known); to != "" {
		return to
	}
	if parts := strings.Split(word, ","); len(parts) > 1 {
		for i, p := range parts {
			near := said(e.What, strings.ToLower(p), e.Known)
			if words := Words(p, e.Known); near == "" && len(words) > 0 {
				near = words[0]
			}
			if near == "" {
				return ""
			}
			parts[i] = near
		}
		return strings.Join(parts, " ")
	}
	return printable.Either(Words(word, e.Known))
}

// Parse returns the element of known that equals word. what is the kind of list. The error is an
// *UnknownError.
func Parse[T ~string](what, word string, known []T) (T, error) {
	words := make([]string, len(known))
	for i, k := range known {
		if string(k) == word {
			return k, nil
		}
		words[i] = string(k)
	}
	return "", &UnknownError{What: what, Words: []string{word}, Known: words}
}
