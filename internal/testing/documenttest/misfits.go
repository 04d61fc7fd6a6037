package documenttest

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Widths are terminal widths that every document must fit.
var Widths = []int{60, 80, 120}

// Misfits returns the faults of a document's text on a terminal: lines that are too wide, broken
// words, numbers separated from their units. A single word, or a command with quotes, may be too
// wide on a line of its own.
func Misfits(d document.Document, text string, columns int) []string {
	var out []string
	known := knownWords(d)
	before := ""
	for l := range strings.Lines(ansi.Strip(text)) {
		l = strings.TrimRight(l, "\n")
		words := strings.Fields(l)
		if n := ansi.StringWidth(l); n > columns && len(words) > 1 && !ofCommand(d, l) {
			out = append(out, fmt.Sprintf("%d columns, not %d: %q", n, columns, l))
		}
		for _, w := range words {
			if !known.has(w) {
				out = append(out, fmt.Sprintf("at %d columns %q is no word: %q", columns, w, l))
			}
		}
		if len(words) > 0 && parted(d, before, words[0]) {
			out = append(out, fmt.Sprintf("at %d columns a number and its unit are parted: %q, %q",
				columns, before, l))
		}
		before = ""
		if len(words) > 0 {
			before = words[len(words)-1]
		}
	}
	return out
}

// ofCommand reports whether the line is a part of a command and has quotes.
func ofCommand(d document.Document, line string) bool {
	line = strings.TrimSpace(strings.TrimSuffix(line, "\\"))
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			if c, ok := b.(document.Command); ok && strings.ContainsAny(line, `"'`) &&
				strings.Contains(c.Line, line) {
				return true
			}
		}
	}
	return false
}

type vocabulary struct {
	words map[string]bool
	lines []string
}

func knownWords(d document.Document) vocabulary {
	v := vocabulary{map[string]bool{}, append(lines(d, false, true), lines(d, true, true)...)}
	for _, l := range v.lines {
		for _, w := range strings.Fields(l) {
			v.words[w] = true
			for _, hop := range strings.SplitAfter(w, "·") {
				v.words[hop] = true
			}
		}
	}
	return v
}

func (v vocabulary) has(word string) bool {
	if drawn(word) || v.words[word] || v.words[strings.TrimSuffix(word, ":")] {
		return true
	}
	if head, tail, ok := strings.Cut(word, "…"); ok { // texts with spaces are cut, too
		return slices.ContainsFunc(v.lines, func(l string) bool {
			return strings.Contains(l, head) && strings.Contains(l, tail)
		})
	}
	hops := strings.SplitAfter(word, "·")
	return len(hops) > 1 && !slices.ContainsFunc(hops, func(h string) bool {
		return h != "" && !v.words[h]
	})
}

func parted(d document.Document, number, unit string) bool {
	last, _ := utf8.DecodeLastRuneInString(number)
	if !unicode.IsDigit(last) || !slices.Contains(document.Units,
		strings.TrimRight(unit, ".,;:)")) {
		return false
	}
	for _, l := range lines(d, false, true) {
		if strings.Contains(" "+l+" ", " "+number+" "+unit+" ") {
			return true
		}
	}
	return false
}
