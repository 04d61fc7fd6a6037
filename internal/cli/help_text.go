package cli

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// paragraphs wraps text. Lines that begin with a space are wrapped only if they are too long.
func paragraphs(text string, columns int) string {
	var out strings.Builder
	var open []string
	kept := "" // an indented line that may continue in the next one
	end := func() {
		out.WriteString(wrap(strings.Join(open, " "), "", columns))
		if kept != "" {
			out.WriteString(hanging(kept, columns))
		}
		open, kept = nil, ""
	}
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "":
			end()
			out.WriteString("\n")
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			line = strings.ReplaceAll(line, "\t", "  ")
			if text, ok := goesOn(kept, line); ok && columns < helpWidth {
				kept += " " + text
				continue
			}
			end()
			kept = line
		default:
			if kept != "" {
				end()
			}
			open = append(open, line)
		}
	}
	end()
	return out.String()
}

func examples(text string, columns int) string {
	out := ""
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if _, _, ok := hung(line); ok {
			line = hanging(strings.TrimRight(line, "\n"), columns)
		}
		out += line
	}
	return out
}

// hanging wraps a line with a name and a text after at least two spaces. The text is indented to
// its start, or goes below the name if little room is left.
func hanging(line string, columns int) string {
	if ansi.StringWidth(line) <= columns {
		return line + "\n"
	}
	name, text, ok := hung(line)
	if !ok {
		text = strings.TrimLeft(line, " ")
		return wrap(text, line[:len(line)-len(text)], columns)
	}
	const least = 20 // columns of the text
	at := ansi.StringWidth(line) - ansi.StringWidth(text)
	if columns-at < least {
		return name + "\n" + wrap(text, "      ", columns)
	}
	return entry(name, text, at, columns)
}

// goesOn returns the text of a line that continues the description in the line before, at the same
// column.
func goesOn(before, line string) (text string, ok bool) {
	_, of, hangs := hung(before)
	text = strings.TrimLeft(line, " ")
	at := ansi.StringWidth(before) - ansi.StringWidth(of)
	return text, hangs && ansi.StringWidth(line)-ansi.StringWidth(text) == at
}

// hung splits a line at the first gap of two or more spaces after a word.
func hung(line string) (name, text string, ok bool) {
	rest := strings.TrimLeft(line, " ")
	i := strings.Index(rest, "  ")
	if i < 0 {
		return line, "", false
	}
	i += len(line) - len(rest)
	return line[:i], strings.TrimLeft(line[i:], " "), true
}

// wrap breaks text into lines. A word longer than columns gets its own line.
func wrap(text, margin string, columns int) string {
	var out strings.Builder
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && ansi.StringWidth(margin+line+" "+word) > columns {
			out.WriteString(margin + line + "\n")
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		out.WriteString(margin + line + "\n")
	}
	return out.String()
}

const helpWidth = 80

func entry(name, text string, at, columns int) string {
	const tooNarrow = 50 // columns: the text goes below the name
	if columns < tooNarrow {
		return name + "\n" + wrap(text, "      ", columns)
	}
	body := wrap(text, strings.Repeat(" ", at), columns)
	if ansi.StringWidth(name)+2 > at {
		return name + "\n" + body
	}
	return name + body[ansi.StringWidth(name):]
}
