package format

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

var tableFormat = Format{Name: "table", write: writeTable}

func writeTable(w io.Writer, d document.Document, o Options) error {
	o.Width = cmp.Or(o.Width, DefaultWidth)
	p := newPrinter(o)
	p.document(d)
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (p *printer) document(d document.Document) {
	p.fitTogether(d)
	for n, s := range d.Sections {
		p.section = n
		if len(s.Title) == 0 && len(s.Blocks) == 0 {
			continue
		}
		if p.b.Len() > 0 && !s.Close {
			p.line("")
		}
		if len(s.Title) > 0 {
			p.wrapped(spaces(s.Level), p.text(s.Title))
		}
		afterTable := false
		for _, b := range s.Blocks {
			t, isTable := b.(document.Table)
			if isTable && afterTable && t.Headed() {
				p.line("")
			}
			p.block(b)
			afterTable = isTable
		}
	}
}

func (p *printer) block(b document.Block) {
	switch b := b.(type) {
	case document.Paragraph:
		p.paragraph(b)
	case document.List:
		for _, item := range b.Items {
			p.wrapped(spaces(b.Level), item)
		}
	case document.Command:
		p.command(b)
	case document.Table:
		p.table(b)
	case document.Route:
		p.route(b)
	}
}

func spaces(level int) string { return strings.Repeat(" ", indent*level) }

const indent = 2

func (p *printer) text(t document.Text) string {
	var b strings.Builder
	for _, s := range t {
		b.WriteString(p.styled(s.Style, s.Text))
	}
	return b.String()
}

func (p *printer) paragraph(x document.Paragraph) {
	for _, l := range p.broken(spaces(x.Level), p.text(x.Text), cmp.Or(x.Break, document.Words)) {
		words := strings.TrimLeft(l, " ")
		p.line(l[:len(l)-len(words)] + p.styled(x.Style, words))
	}
}

// command prints a command line. It breaks the line before flags and routes, or at unquoted words,
// and adds backslashes, so that the command can be pasted.
func (p *printer) command(c document.Command) {
	const tail = " \\"
	margin := spaces(c.Level + 2)
	line := margin
	add := func(part string) {
		switch {
		case line == margin:
			line += part
		case width(line+" "+part+tail) > p.width:
			p.line(line + tail)
			line = margin + "  " + part
		default:
			line += " " + part
		}
	}
	for _, part := range commandParts(c.Line) {
		if width(margin+"  "+part+tail) <= p.width || strings.ContainsAny(part, `"'`) {
			add(part)
			continue
		}
		for _, word := range strings.Fields(part) {
			add(word)
		}
	}
	p.line(line)
}

var routeWord = regexp.MustCompile(`^[a-z]+=`)

// commandParts splits a command line. A flag and its value stay together.
func commandParts(c string) (out []string) {
	last := ""
	for _, word := range strings.Split(c, " ") {
		if len(out) == 0 || strings.HasPrefix(word, "--") ||
			routeWord.MatchString(word) && !strings.HasPrefix(last, "--") {
			out = append(out, word)
		} else {
			out[len(out)-1] += " " + word
		}
		last = word
	}
	return out
}

func (p *printer) route(r document.Route) {
	margin := spaces(r.Level)
	bar := margin + "  │"
	kinds, counted := 0, false
	for _, s := range r.Steps {
		kinds, counted = max(kinds, width(s.Kind)), counted || len(s.Counters) > 0
	}
	for i, s := range r.Steps {
		if i > 0 && counted {
			p.line(bar)
		}
		p.paragraph(document.Paragraph{Level: r.Level, Break: r.Break,
			Text: append(document.Plainly(align(s.Kind, kinds, false)+"  "), s.Text...)})
		p.counters(bar, s.Counters)
	}
	if r.Ends != "" {
		p.line(margin + "  ╳")
		p.wrapped(margin, p.styled(document.Bad, r.Ends))
	}
}

// counters aligns the counters in columns if these fit.
func (p *printer) counters(bar string, cs []document.Counter) {
	lines := func(format string) (out []string, fits bool) {
		fits = true
		for _, c := range cs {
			l := bar + fmt.Sprintf(format, align(c.What, whatWidth, false), c.Before, c.After,
				c.After-c.Before)
			out, fits = append(out, l), fits && width(l) <= p.width
		}
		return out, fits
	}
	out, ok := lines("     %s %12d → %-12d +%d")
	if !ok {
		out, _ = lines("  %s %d → %d +%d")
	}
	for _, l := range out {
		p.line(l)
	}
}

const whatWidth = 12 // columns

// fitTogether chooses the layout of tables that share one: the first in which the widest fits.
func (p *printer) fitTogether(d document.Document) {
	together := map[string][]document.Table{}
	var names []string
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			t, ok := b.(document.Table)
			if !ok || t.Fit == "" {
				continue
			}
			if !slices.Contains(names, t.Fit) {
				names = append(names, t.Fit)
			}
			together[t.Fit] = append(together[t.Fit], t)
		}
	}
	p.shared = map[string]document.Layout{}
	for _, name := range names {
		p.shared[name], _ = p.fit(together[name], together[name][0].Layouts)
	}
}

type printer struct {
	b      strings.Builder
	width  int
	color  bool
	shared map[string]document.Layout // by Table.Fit

	lines   int
	section int
	marks   []Mark
}

func newPrinter(o Options) *printer { return &printer{width: o.Width, color: o.Color} }

func (p *printer) line(s string) {
	p.b.WriteString(s + "\n")
	p.lines++
}

// attributes are codes of terminals (ECMA-48, SGR).
var attributes = map[document.Style]string{document.Strong: "1", document.Faint: "2",
	document.Bad: "31", document.Good: "32", document.Doubtful: "33"}

func (p *printer) styled(s document.Style, text string) string {
	if !p.color || text == "" || s == document.Plain {
		return text
	}
	return "\x1b[" + attributes[s] + "m" + text + "\x1b[0m"
}

func width(s string) int { return ansi.StringWidth(s) }
