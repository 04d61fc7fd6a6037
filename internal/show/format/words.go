package format

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

func (p *printer) wrapped(indent, s string) {
	for _, l := range p.broken(indent, s, document.Words) {
		p.line(l)
	}
}

// broken breaks a text into lines. Further lines are indented by two more columns.
func (p *printer) broken(indent, s, sep string) []string {
	return brokenAt(p.width, indent, s, sep)
}

// Wrap breaks text at words. Further lines are indented by two columns.
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

// piece is a part of a text. before is the separator, unless the piece is first on its line.
type piece struct{ before, text string }

// pieces splits s at sep. With Words, the pieces are words and the hops of a path; a number and its
// unit are one piece.
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

const hopJoin = "·"

// hops splits a path after each hop but the last. Any other word is one piece.
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

// together does what document.Together does, for words that may be styled.
func together(before, word string) bool {
	return document.Together(ansi.Strip(before), ansi.Strip(word))
}

func linesWidth(text string) int {
	most := 0
	for _, l := range strings.Split(text, "\n") {
		most = max(most, width(l))
	}
	return most
}
