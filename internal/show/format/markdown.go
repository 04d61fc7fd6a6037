package format

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// markdownFormat writes GitHub-flavored Markdown (https://github.github.com/gfm/).
var markdownFormat = Format{Name: "markdown", write: writeMarkdown}

func writeMarkdown(w io.Writer, d document.Document, _ Options) error {
	var m markdown
	for _, s := range d.Sections {
		m.section(s)
	}
	_, err := io.WriteString(w, m.b.String())
	return err
}

type markdown struct{ b strings.Builder }

func (m *markdown) block(lines ...string) {
	if len(lines) == 0 {
		return
	}
	if m.b.Len() > 0 {
		m.b.WriteString("\n")
	}
	for _, l := range lines {
		m.b.WriteString(l + "\n")
	}
}

// topHeading is the level of a document's titles. Higher levels belong to the comment or page that
// contains the text.
const topHeading = 3

func (m *markdown) section(s document.Section) {
	if len(s.Title) > 0 {
		m.block(strings.Repeat("#", topHeading+s.Level) + " " +
			markdownLine(strings.TrimSpace(s.Title.String())))
	}
	var commands []string
	for i, b := range s.Blocks {
		switch b := b.(type) {
		case document.Paragraph:
			if text := markdownStart(markdownSpans(b.Text)); text != "" {
				m.block(text)
			}
		case document.List:
			m.block(bullets(b.Items)...)
		case document.Command:
			commands = append(commands, b.Line)
			if i+1 < len(s.Blocks) {
				if _, more := s.Blocks[i+1].(document.Command); more {
					continue
				}
			}
			m.block(fenced(commands)...)
			commands = nil
		case document.Table:
			m.block(markdownTable(b)...)
		case document.Route:
			m.block(markdownRoute(b)...)
		}
	}
}

func bullets(items []string) []string {
	var out []string
	for _, item := range items {
		out = append(out, "- "+markdownStart(markdownLine(item)))
	}
	return out
}

// fenced returns the lines in a fence that is longer than any run of fence characters in them.
func fenced(lines []string) []string {
	fence := "```"
	for strings.Contains(strings.Join(lines, "\n"), fence) {
		fence += "`"
	}
	return slices.Concat([]string{fence + "sh"}, lines, []string{fence})
}

// markdownTable returns the lines of a table. Text above a row becomes a row. Notes below rows
// become a last column.
func markdownTable(t document.Table) []string {
	noted := slices.ContainsFunc(t.Rows, func(r document.Row) bool { return r.Note != "" })
	var heads, rule []string
	for i, c := range t.Columns {
		heads = append(heads, markdownLine(t.Head(i).Title()))
		if c.Right {
			rule = append(rule, "---:")
		} else {
			rule = append(rule, "---")
		}
	}
	if noted {
		heads, rule = append(heads, ""), append(rule, "---")
	}
	line := func(cells []string) string {
		for len(cells) < len(rule) {
			cells = append(cells, "")
		}
		return "| " + strings.Join(cells, " | ") + " |"
	}
	out := []string{line(heads), line(rule)}
	for _, r := range t.Rows {
		if len(r.Above) > 0 {
			out = append(out, line([]string{emphasis(
				document.Strong, markdownLine(r.Above.String()))}))
		}
		var cells []string
		for _, c := range r.Cells {
			cells = append(cells, emphasis(c.Style, markdownLine(strings.TrimSpace(c.Text+c.Mark))))
		}
		if noted {
			cells = append(cells, markdownLine(r.Note))
		}
		out = append(out, line(cells))
	}
	return out
}

func markdownRoute(r document.Route) []string {
	var out []string
	for i, s := range r.Steps {
		out = append(out, fmt.Sprintf("%d. %s %s", i+1,
			emphasis(document.Strong, markdownLine(s.Kind)), markdownSpans(s.Text)))
		for _, c := range s.Counters {
			out = append(out, fmt.Sprintf("   - %s: %d → %d (+%d)", markdownLine(c.What), c.Before,
				c.After, c.After-c.Before))
		}
	}
	if r.Ends != "" {
		out = append(out, fmt.Sprintf("%d. ╳ %s", len(r.Steps)+1, markdownLine(r.Ends)))
	}
	return out
}

func markdownSpans(t document.Text) string {
	var b strings.Builder
	for _, s := range t {
		b.WriteString(emphasis(s.Style, markdownLine(s.Text)))
	}
	return strings.TrimSpace(b.String())
}

// emphasis returns text in a style. Markdown has no colours, but verdicts are also words.
func emphasis(s document.Style, text string) string {
	inner := strings.TrimSpace(text)
	if s != document.Strong || inner == "" {
		return text
	}
	return strings.Replace(text, inner, "**"+inner+"**", 1)
}

// markdownStart escapes text that begins a block, so that it is not read as a heading, a list or a
// quotation.
func markdownStart(text string) string {
	if at := opening.FindStringIndex(text); at != nil {
		last := strings.TrimRight(text[:at[1]], " \t")
		return last[:len(last)-1] + `\` + text[len(last)-1:]
	}
	return text
}

// opening matches the beginning of a block. Apart from white space, it ends with a character that
// can be escaped.
var opening = regexp.MustCompile(`^(?:(?:#{1,6}|[-+]|\d{1,9}[.)])(?:\s|$)|-[- ]*$|=+$)`)

// markdownLine escapes text, so that it shows literally: without markup, HTML, mentions (@name) or
// references (#1).
func markdownLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return r == '\n' || r == '\r'
	}), " ")
	var b strings.Builder
	before := ' '
	for i, r := range s {
		after, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
		b.WriteString(markdownRune(before, r, after))
		before = r
	}
	return b.String()
}

func markdownRune(before, r, after rune) string {
	const nothing = "&#8203;" // zero-width space
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	switch {
	case strings.ContainsRune("\\`*[]|~", r), r == '_' && (!word(before) || !word(after)):
		return `\` + string(r)
	case r == '<':
		return "&lt;"
	case r == '>':
		return "&gt;"
	case r == '$':
		return "&#36;" // begins a formula
	case r == '&' && (word(after) || after == '#'):
		return "&amp;"
	case (r == '@' || r == '#') && !word(before) && word(after):
		return string(r) + nothing
	}
	return string(r)
}
