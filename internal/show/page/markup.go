package page

import (
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// markup is HTML, or what stands in a style or script element.
type markup string

// put returns HTML by a format of fmt. Arguments that are not markup are escaped.
func put(format string, args ...any) markup {
	for i, a := range args {
		if _, is := a.(markup); !is {
			args[i] = html.EscapeString(fmt.Sprint(a))
		}
	}
	return markup(fmt.Sprintf(format, args...))
}

// when returns m if there is something to say, else nothing.
func when(there bool, m markup) markup {
	if !there {
		return ""
	}
	return m
}

// optional returns the HTML of a text, or nothing if the text is empty.
func optional(format, text string) markup { return when(text != "", put(format, text)) }

func each[T any](all []T, one func(T) markup) markup {
	var b strings.Builder
	for _, x := range all {
		b.WriteString(string(one(x)))
	}
	return markup(b.String())
}

var flags = regexp.MustCompile(`(^|[ (])(--?[a-z][\w-]*)`)

// nobreak returns text as HTML that keeps numbers with their units, and flags whole.
func nobreak(text string) markup {
	text = html.EscapeString(document.Unbroken(text))
	return markup(flags.ReplaceAllString(text, `$1<span class="flag">$2</span>`))
}

var classes = map[document.Style]string{
	document.Strong: "strong", document.Faint: "faint", document.Good: "good",
	document.Bad: "bad", document.Doubtful: "doubtful"}

func classOf(s document.Style) markup { return optional(` class="%s"`, classes[s]) }

func textOf(t document.Text) markup {
	return each(t, func(s document.Span) markup {
		if class := classOf(s.Style); class != "" {
			return put(`<span%s>%s</span>`, class, nobreak(s.Text))
		}
		return nobreak(s.Text)
	})
}

func sectionOf(s document.Section) markup {
	level := strconv.Itoa(min(3, 2+s.Level))
	return "<section>\n" +
		when(len(s.Title) > 0, put("<h%[1]s>%[2]s</h%[1]s>\n", level, textOf(s.Title))) +
		each(scripts(s.Blocks), func(b document.Block) markup { return blockOf(b) + "\n" }) +
		"</section>\n"
}

// scripts joins neighbouring commands, so that they can be copied together.
func scripts(blocks []document.Block) (out []document.Block) {
	for _, b := range blocks {
		if c, is := b.(document.Command); is && len(out) > 0 {
			if before, more := out[len(out)-1].(document.Command); more {
				out[len(out)-1] = document.Command{Line: before.Line + "\n" + c.Line, Level: c.Level}
				continue
			}
		}
		out = append(out, b)
	}
	return out
}

func blockOf(b document.Block) markup {
	switch b := b.(type) {
	case document.Paragraph:
		return put(`<p%s>%s</p>`, classOf(b.Style), textOf(b.Text))
	case document.List:
		return listOf(b)
	case document.Command:
		return put(`<pre><code>%s</code></pre>`, b.Line)
	case document.Table:
		return tableOf(b)
	case document.Route:
		return routeOf(b)
	}
	panic(fmt.Sprintf("no form for %T", b)) // cannot happen: those are all blocks
}

const mostPointsOpen = 8

func listOf(l document.List) markup {
	list := put("<ul class=\"points %s\">\n%s</ul>", l.Topic, each(l.Items, func(text string) markup {
		return put("<li>%s</li>\n", nobreak(text))
	}))
	if l.Topic == document.Answer || len(l.Items) <= mostPointsOpen {
		return list
	}
	return put("<details class=\"list\">\n<summary>%v of them</summary>\n%s\n</details>", len(l.Items), list)
}
