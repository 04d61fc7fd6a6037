package view

import (
	"bytes"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/documenttest"
)

// rendered returns a line for each heading, paragraph, point, row and line of code, with tabs
// between cells. Markup that toll's text never uses fails the test.
func rendered(t *testing.T, source string) []string {
	t.Helper()
	var page bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough))
	if err := md.Convert([]byte(source), &page); err != nil {
		t.Fatal(err)
	}
	// a line per row
	one := strings.NewReplacer(">\n<td", "><td", ">\n<th", "><th").Replace(page.String())
	text := tag.ReplaceAllStringFunc(one, func(s string) string {
		switch name := strings.Trim(strings.Fields(s)[0], "</>"); name {
		case "td", "th":
			return "\t"
		case "h3", "h4", "p", "ul", "ol", "li", "table", "thead", "tbody", "tr", "pre", "code":
			return "\n"
		case "strong":
			return ""
		}
		t.Errorf("foreign text became %s", s)
		return ""
	})
	var out []string
	for l := range strings.Lines(text) {
		l = strings.ReplaceAll(html.UnescapeString(strings.TrimSpace(l)), "\u200b", "")
		if l != "" {
			out = append(out, l)
		}
	}
	return out
}

var tag = regexp.MustCompile(`<[^>]*>`)

func TestMarkdown(t *testing.T) {
	study, err := published.Compare(published.Studies(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]document.Document{
		"report":    Report(usual()),
		"ladder":    Report(climbed()),
		"trace":     Report(traced()),
		"mesh":      Report(meshReports()["mesh"]),
		"chat":      Report(routeReports()["chat"]),
		"published": Published(study),
		"ports":     Ports(pricedPorts(), true),
		"predict":   Prediction(prediction(predict.Workload{Queries: 20, Bytes: 4096, QPS: 500})),
	} {
		t.Run(name, func(t *testing.T) {
			source := written(t, "markdown", d, format.Options{})
			lines := rendered(t, source)
			var instead []string // replaces tables that narrow text has no space for
			wantTables := 0
			for _, s := range d.Sections {
				for _, b := range s.Blocks {
					if table, ok := b.(document.Table); ok {
						wantTables, instead = wantTables+1, append(instead, table.Instead)
					}
				}
			}
			for _, want := range documenttest.Lines(d) {
				if !slices.Contains(instead, want) &&
					!slices.ContainsFunc(lines, func(have string) bool {
						return hasWords(have, want)
					}) {
					t.Errorf("not rendered: %q", want)
				}
			}
			if tables := strings.Count(source, "\n| ---"); tables != wantTables {
				t.Errorf("%d tables are rendered, want %d", tables, wantTables)
			}
		})
	}
}

func hasWords(have, want string) bool {
	left := strings.Fields(have)
	for _, w := range strings.Fields(strings.ReplaceAll(want, "con- tainer", "container")) {
		i := slices.Index(left, w)
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

func TestMarkdownOfForeignText(t *testing.T) {
	for _, text := range []string{"a|b", `a\|b`, `\`, "`rm -rf`", "``", "<script>alert(1)</script>",
		"<!-- x -->", "&lt;", "a & b", "AT&T;", "*a*", "**a**", "_a_", "a_b_c",
		"~~a~~", "[a](javascript:b)", "![a](b)", "# a", "- a", "+ a", "1. a", "12) a", "---", "===",
		"> a", "$a$", "@team", "fix #12", "a\nb", "```", "<https://a.b>", "-5"} {
		for name, d := range map[string]document.Document{
			"title": {Sections: []document.Section{{Title: document.Strongly(text)}}},
			"paragraph": {Sections: []document.Section{
				{Blocks: []document.Block{document.Paragraph{Text: document.Plainly("above")},
					document.Paragraph{Text: document.Plainly(text)}}}}},
			"item": {Sections: []document.Section{
				{Blocks: []document.Block{document.List{Items: []string{text, "next"}}}}}},
			"cell": {Sections: []document.Section{
				{Blocks: []document.Block{document.Table{Columns: make([]document.Column, 2),
					Rows: []document.Row{{Cells: document.Texts("x", text)},
						{Cells: document.Texts(text, "y")}}}}}}},
			"strong": {Sections: []document.Section{
				{Blocks: []document.Block{document.Paragraph{
					Text: document.Plainly("a ").Then(text, document.Strong)}}}}},
			"command": {Sections: []document.Section{
				{Blocks: []document.Block{document.Command{
					Line: strings.ReplaceAll(text, "\n", " ")}, document.Command{Line: "next"}}}}},
		} {
			source := written(t, "markdown", d, format.Options{})
			lines := rendered(t, source)
			want := strings.ReplaceAll(text, "\n", " ")
			if !slices.ContainsFunc(lines, func(l string) bool {
				return slices.Contains(strings.Split(l, "\t"), want) || l == "a "+want
			}) {
				t.Errorf("%s %q: rendered %q of\n%s", name, text, lines, source)
			}
		}
	}
}

func TestMarkdownTable(t *testing.T) {
	d := document.Document{Sections: []document.Section{
		{Title: document.Strongly("host → container"), Level: 1, Blocks: []document.Block{
			document.Table{Columns: []document.Column{
				{Head: [2]string{"", "mode"}}, {Head: [2]string{"this machine", "p50"}, Span: 2,
					Right: true}, {Head: [2]string{"", "p99"}},
				{Head: [2]string{"a con-", "tainer"}}},
				Rows: []document.Row{
					{Above: document.Plainly("on lab"),
						Cells: document.Texts("host", "1", "2", "3")},
					{Cells: []document.Cell{{Text: "bridge", Style: document.Strong},
						{Text: "0.82 (0.78–0.97) worse", Mark: "*"}, {}, {}}, Note: "br | veth"},
				}}, document.Command{Line: "toll compare --save run.jsonl"},
			document.Command{Line: "toll report run.jsonl"}}}}}
	const want = `#### host → container

| mode | this machine p50 | this machine p99 | a container |  |
| --- | ---: | --- | --- | --- |
| **on lab** |  |  |  |  |
| host | 1 | 2 | 3 |  |
| **bridge** | 0.82 (0.78–0.97) worse\* |  |  | br \| veth |

` + "```sh\ntoll compare --save run.jsonl\ntoll report run.jsonl\n```\n"
	if got := written(t, "markdown", d, format.Options{}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
