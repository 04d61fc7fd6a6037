package show

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// printer collects lines of at most width columns.
type printer struct {
	b      strings.Builder
	width  int
	color  bool
	shared map[string]document.Layout // of tables with one layout

	lines   int    // so far
	section int    // that is being printed
	marks   []Mark // of rows
}

func newPrinter(o Options) *printer { return &printer{width: o.Width, color: o.Color} }

func (p *printer) line(s string) {
	p.b.WriteString(s + "\n")
	p.lines++
}

// attributes are those of text on a terminal (ECMA-48, SGR).
var attributes = map[document.Style]string{document.Strong: "1", document.Faint: "2",
	document.Bad: "31", document.Good: "32", document.Doubtful: "33"}

func (p *printer) styled(s document.Style, text string) string {
	if !p.color || text == "" || s == document.Plain {
		return text
	}
	return "\x1b[" + attributes[s] + "m" + text + "\x1b[0m"
}

// styleOf is the style of what has that verdict.
func styleOf(v stats.Verdict) document.Style {
	return map[stats.Verdict]document.Style{stats.Better: document.Good, stats.Gains: document.Good,
		stats.Worse: document.Bad, stats.Costs: document.Bad, stats.Unclear: document.Doubtful}[v]
}

func width(s string) int { return ansi.StringWidth(s) }

// wrapped prints s behind indent and breaks it at sep where it is too long.
func (p *printer) wrapped(indent, s, sep string) {
	for _, l := range p.broken(indent, s, sep) {
		p.line(l)
	}
}

// broken is s behind indent, broken at sep where it is too long; further lines are
// indented by two more.
func (p *printer) broken(indent, s, sep string) []string {
	var lines []string
	line := indent
	for i, word := range unparted(strings.Split(s, sep), sep) {
		switch {
		case i == 0:
			line += word
		case sep != document.Words && width(indent+"  "+word) > p.width: // longer than a line
			more := p.broken(indent+"  ", word, document.Words)
			lines, line = append(append(lines, line), more[:len(more)-1]...), more[len(more)-1]
		case width(line+sep+word) > p.width:
			lines = append(lines, line)
			line = indent + "  " + word
		default:
			line += sep + word
		}
	}
	return append(lines, line)
}

// unitsOf are the units that follow a number in a sentence.
var unitsOf = []string{"%", "ns", "µs", "ms", "s", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "MB/s", "GB/s", "s/GB", "KiB", "MiB", "GiB"}

// unparted returns the parts of a sentence between which a line may end: a number and its unit are
// one.
func unparted(words []string, sep string) []string {
	if sep != document.Words {
		return words
	}
	out := words[:0:0]
	for i, w := range words {
		unit := slices.Contains(unitsOf, strings.TrimRight(w, ".,;:)"))
		if i > 0 && unit && strings.ContainsAny(lastOf(words[i-1]), "0123456789") {
			out[len(out)-1] += sep + w
			continue
		}
		out = append(out, w)
	}
	return out
}

// lastOf returns the last byte of a word; "" of an empty one.
func lastOf(word string) string { return word[max(0, len(word)-1):] }
