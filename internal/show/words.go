package show

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// wrapped prints s behind indent and breaks it at sep where it is too long.
func (p *printer) wrapped(indent, s, sep string) {
	for _, l := range p.broken(indent, s, sep) {
		p.line(l)
	}
}

// broken returns s behind indent in lines of at most the printer's width, broken at sep; further
// lines are indented by two more. What is longer than a line is broken at words, and a word that is
// longer has a line of its own.
func (p *printer) broken(indent, s, sep string) []string {
	return brokenAt(p.width, indent, s, sep)
}

// Wrap returns text in lines of at most the given number of columns, broken at words as those of a
// document; further lines are indented by two columns.
func Wrap(text string, columns int) []string { return brokenAt(columns, "", text, document.Words) }

func brokenAt(columns int, indent, s, sep string) []string {
	var lines []string
	line, more := indent, indent+"  "
	for i, x := range shorterThan(columns-width(more), pieces(s, sep), sep) {
		start := more
		if i == 0 {
			start = indent
		}
		switch {
		case i > 0 && width(line+x.before+x.text) <= columns:
			line += x.before + x.text
		case sep != document.Words && width(start+x.text) > columns:
			if i > 0 {
				lines = append(lines, line)
			}
			longer := brokenAt(columns, start, x.text, document.Words)
			lines, line = append(lines, longer[:len(longer)-1]...), longer[len(longer)-1]
		default:
			if i > 0 {
				lines = append(lines, line)
			}
			line = start + x.text
		}
	}
	lines = append(lines, line)
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return lines
}

// shorterThan breaks pieces of several words that are longer than a line.
func shorterThan(columns int, all []piece, sep string) []piece {
	if sep != document.Words {
		return all
	}
	var out []piece
	for _, x := range all {
		if width(x.text) <= columns {
			out = append(out, x)
			continue
		}
		for n, word := range strings.Split(x.text, sep) {
			if n > 0 {
				x.before = sep
			}
			out = append(out, piece{x.before, word})
		}
	}
	return out
}

// piece is text that stays on one line, behind what separates it from the piece before it there.
type piece struct{ before, text string }

// pieces returns the pieces of s between which a line may end. At words these are the words, of which
// a number and its unit are one, and the hops of a path.
func pieces(s, sep string) []piece {
	var out []piece
	for i, word := range strings.Split(s, sep) {
		switch {
		case sep != document.Words:
			out = append(out, piece{sep, word})
		case i > 0 && together(out[len(out)-1].text, word):
			out[len(out)-1].text += sep + word
		default:
			before := sep
			for _, hop := range hops(word) {
				out, before = append(out, piece{before, hop}), ""
			}
		}
	}
	return out
}

// hopJoin stands between the hops of a path.
const hopJoin = "·"

// hops splits a path behind each of its hops but the last; any other word is one.
func hops(word string) []string {
	all := strings.SplitAfter(word, hopJoin)
	for i, hop := range all {
		first, _ := utf8.DecodeRuneInString(hop)
		last, _ := utf8.DecodeLastRuneInString(strings.TrimSuffix(hop, hopJoin))
		if !unicode.IsLetter(first) && i > 0 || !unicode.IsLetter(last) && !unicode.IsDigit(last) {
			return []string{word}
		}
	}
	return all
}

// together reports whether no line ends between two words, which may be styled.
func together(before, word string) bool {
	return document.Together(ansi.Strip(before), ansi.Strip(word))
}

// linesWidth returns the columns of the widest line of a text.
func linesWidth(text string) int {
	most := 0
	for _, l := range strings.Split(text, "\n") {
		most = max(most, width(l))
	}
	return most
}
