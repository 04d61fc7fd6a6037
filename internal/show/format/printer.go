package format

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

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
