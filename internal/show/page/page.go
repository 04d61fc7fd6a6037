// Package page writes a document as one HTML file that loads nothing else. It has the whole
// document as text and tables, and its JSON. If the document has a Page, the file also has charts,
// each with a table of its figures.
//
// Charts are data that assets/page.js draws in the browser; web/build.mjs builds it from web/src
// and Observable Plot. The Content-Security-Policy allows only this package's scripts and styles,
// by checksum, and forbids all requests.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

//go:generate make -C ../../.. page

//go:embed assets
var assets embed.FS

func asset(name string) string {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // cannot fail: the file is embedded
	}
	return string(b)
}

// plotStyle is the style that Observable Plot writes into each chart. The policy needs its
// checksum.
const plotStyle = `:where(.chart) {
  --plot-background: white;
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
}
:where(.chart text),
:where(.chart tspan) {
  white-space: pre;
}`

type view struct {
	Policy, Title string
	Command, Lede string // above and below the title; "": nothing
	Style         template.CSS
	Lead, Rest    []document.Section
	Groups        []group
	Paths         []document.PathGroup
	Facts         []document.FactGroup
	Charts        []chart // of all groups

	ChartData, Report, Bundle, Script template.JS
}

type group struct {
	ID, Title string
	Charts    []chart
}

// chart is JSON for the page's script.
type chart struct {
	ID string `json:"id"`
	document.Chart
}

func Write(w io.Writer, d document.Document) error {
	v, err := viewOf(d)
	if err != nil {
		return err
	}
	return pages.Execute(w, v)
}

func viewOf(d document.Document) (v view, err error) {
	v = view{Title: printable.Capital(strings.TrimPrefix(string(d.Kind), "a ")), Rest: d.Sections,
		Style: template.CSS(asset("page.css")), Script: template.JS(asset("file.js"))}
	if d.Page != nil {
		p := d.Page()
		v.Title, v.Command, v.Lede = p.Title, p.Command, p.Lede
		v.Paths, v.Facts = p.Paths, p.Facts
		v.Lead, v.Rest = arranged(d.Sections)
		v.number(p.Groups)
	}
	report, err := json.Marshal(d.JSON)
	if err != nil {
		return v, err
	}
	v.Report = template.JS(report) // safe in a script: json escapes <, > and &
	scripts := []string{string(v.Script)}
	if len(v.Charts) > 0 {
		data, err := json.Marshal(v.Charts)
		if err != nil {
			return v, err
		}
		v.ChartData, v.Bundle = template.JS(data), template.JS(asset("page.js"))
		scripts = append(scripts, string(v.Bundle))
	}
	v.Policy = policy(scripts, []string{string(v.Style), plotStyle})
	return v, nil
}

func (v *view) number(groups []document.ChartGroup) {
	for i, g := range groups {
		out := group{ID: fmt.Sprintf("charts-%d", i+1), Title: g.Title}
		for k, c := range g.Charts {
			one := chart{fmt.Sprintf("chart-%d-%d", i+1, k+1), c}
			out.Charts = append(out.Charts, one)
			if c.Kind != "" {
				v.Charts = append(v.Charts, one)
			}
		}
		v.Groups = append(v.Groups, out)
	}
}

func policy(scripts, styles []string) string {
	sums := func(of []string) string {
		var out []string
		for _, s := range of {
			sum := sha256.Sum256([]byte(s))
			out = append(out, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
		}
		return strings.Join(out, " ")
	}
	return "default-src 'none'; script-src " + sums(scripts) + "; style-src " + sums(styles) +
		"; base-uri 'none'; form-action 'none'"
}

var pages = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"class":   func(s document.Style) string { return classes[s] },
	"kind":    func(b document.Block) string { return kinds[fmt.Sprintf("%T", b)] },
	"delta":   func(c document.Counter) uint64 { return c.After - c.Before },
	"heading": heading,
	"many":    func(gs []group) bool { return len(gs) > mostLinks },
	"cell":    tableCell,
	"spans":   spans,
	"nobreak": nobreak,
	"long": func(l document.List) bool {
		return l.Topic != document.Answer && len(l.Items) > mostPointsOpen
	},
	"unknown": func(b document.Block) (string, error) {
		return "", fmt.Errorf("no form for %T", b)
	},
}).ParseFS(assets, "assets/page.html"))

var flags = regexp.MustCompile(`(^|[ (])(--?[a-z][\w-]*)`)

// nobreak returns text as HTML that keeps numbers with their units, and flags whole.
func nobreak(text string) template.HTML {
	text = template.HTMLEscapeString(document.Unbroken(text))
	return template.HTML(flags.ReplaceAllString(text, `$1<span class="flag">$2</span>`))
}

const mostPointsOpen = 8

// mostLinks is the largest number of groups of charts whose links stand above the charts. More are
// folded up.
const mostLinks = 6

var classes = map[document.Style]string{
	document.Strong: "strong", document.Faint: "faint", document.Good: "good",
	document.Bad: "bad", document.Doubtful: "doubtful"}

var kinds = map[string]string{"document.Paragraph": "paragraph", "document.List": "list",
	"document.Command": "command",
	"document.Table":   "table", "document.Route": "route"}

func heading(level int) int { return min(6, 2+level) }

type span struct {
	Text    string
	Columns int
}

func spans(t document.Table) []span {
	var out []span
	several := false
	for i := 0; i < len(t.Columns); {
		s := span{t.Columns[i].Head[0], min(max(1, t.Columns[i].Span), len(t.Columns)-i)}
		out, several = append(out, s), several || s.Columns > 1
		i += s.Columns
	}
	if !several {
		return nil
	}
	return out
}

type cellView struct {
	Cell  document.Cell
	Head  bool
	Class string
}

// mostExact is the largest number of cells of a table that shows exact values. Larger tables have
// them only in the page's data.
const mostExact = 1000

func tableCell(t document.Table, column int, c document.Cell) cellView {
	class := classes[c.Style]
	if column < len(t.Columns) && t.Columns[column].Right {
		class = strings.TrimSpace("right " + class)
	}
	if len(t.Rows)*len(t.Columns) > mostExact {
		c.Number = nil
	}
	return cellView{c, column == 0, class}
}
