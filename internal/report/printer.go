package report

import (
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/bridgetoll/bridgetoll/internal/stats"
)

// printer collects lines of at most width columns.
type printer struct {
	b     strings.Builder
	width int
	layout
	styles *lipgloss.Renderer
}

// layout is how a table saves width.
type layout struct {
	short bool // hop names
	below bool // paths are below their rows
	gap   int  // between columns
}

// layouts are tried in this order; the last is taken if none fits.
var layouts = []layout{{gap: 2}, {short: true, gap: 2}, {short: true, gap: 1}, {below: true, gap: 2}, {below: true, gap: 1}}

// onlyGaps are those of tables whose rows have no path.
var onlyGaps = []layout{{gap: 2}, {gap: 1}}

func newPrinter(o Options) *printer {
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(termenv.Ascii)
	if o.Color {
		r.SetColorProfile(termenv.ANSI)
	}
	return &printer{width: o.Width, layout: layouts[0], styles: r}
}

func (p *printer) line(s string) { p.b.WriteString(s + "\n") }

func (p *printer) bold(s string) string { return p.styles.NewStyle().Bold(true).Render(s) }
func (p *printer) dim(s string) string  { return p.styles.NewStyle().Faint(true).Render(s) }

// verdict is how a row with that verdict looks.
func (p *printer) verdict(v stats.Verdict) func(string) string {
	const green, red, yellow = "2", "1", "3"
	color := map[stats.Verdict]string{stats.Better: green, stats.Gains: green, stats.Worse: red, stats.Costs: red, stats.Unclear: yellow}[v]
	if color == "" {
		return func(s string) string { return s }
	}
	style := p.styles.NewStyle().Foreground(lipgloss.Color(color))
	return func(s string) string { return style.Render(s) }
}

func width(s string) int { return lipgloss.Width(s) }

// Wrapped is text behind indent in lines of at most so many columns; further
// lines are indented by two more.
func Wrapped(indent, text string, columns int) string {
	p := newPrinter(Options{Width: columns})
	p.wrapped(indent, text, " ")
	return p.b.String()
}

// item prints a point of a list.
func (p *printer) item(s string) { p.wrapped("  ", s, " ") }

// wrapped prints s behind indent and breaks it at sep where it is too long;
// further lines are indented by two more.
func (p *printer) wrapped(indent, s, sep string) {
	line := indent
	for i, word := range strings.Split(s, sep) {
		switch {
		case i == 0:
			line += word
		case width(line+sep+word) > p.width:
			p.line(line)
			line = indent + "  " + word
		default:
			line += sep + word
		}
	}
	p.line(line)
}

// faint is wrapped, in faint words.
func (p *printer) faint(indent, s string) {
	for l := range strings.Lines(Wrapped(indent, s, p.width)) {
		words := strings.TrimLeft(l, " ")
		p.line(l[:len(l)-len(words)] + p.dim(strings.TrimSuffix(words, "\n")))
	}
}
