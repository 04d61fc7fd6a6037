// Package page writes a document as one HTML file that loads nothing else. It has the whole
// document as text and tables, and its JSON. If the document has a Page, the file also has charts,
// each with a table of its figures.
//
// Charts are data that assets/page.js draws in the browser; web/build.mjs builds it from web/src
// and Observable Plot. The Content-Security-Policy allows only this package's scripts and styles,
// by checksum, and forbids all requests.
package page

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
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
	Style         markup
	Lead, Rest    []document.Section
	Groups        []group
	Paths         []document.PathGroup
	Facts         []document.FactGroup
	Charts        []chart // of all groups

	ChartData, Report, Bundle, Script markup
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
	_, err = io.WriteString(w, string(v.page()))
	return err
}

func viewOf(d document.Document) (v view, err error) {
	v = view{Title: printable.Capital(strings.TrimPrefix(string(d.Kind), "a ")), Rest: d.Sections,
		Style: markup(asset("page.css")), Script: markup(asset("file.js"))}
	if d.Page != nil {
		p := d.Page()
		v.Title, v.Command, v.Lede = cmp.Or(p.Title, v.Title), p.Command, p.Lede
		v.Paths, v.Facts = p.Paths, p.Facts
		v.Lead, v.Rest = arranged(d.Sections)
		v.number(p.Groups)
	}
	report, err := json.Marshal(d.JSON)
	if err != nil {
		return v, err
	}
	v.Report = markup(report) // safe in a script: json escapes <, > and &
	scripts := []string{string(v.Script)}
	if len(v.Charts) > 0 {
		data, err := json.Marshal(v.Charts)
		if err != nil {
			return v, err
		}
		v.ChartData, v.Bundle = markup(data), markup(asset("page.js"))
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
