package view

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/documenttest"
)

func htmlOf(t *testing.T, d document.Document) (*html.Node, string) {
	t.Helper()
	page := written(t, "html", d, format.Options{})
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return root, page
}

func pageLines(root *html.Node) []string {
	var out []string
	for n := range root.Descendants() {
		switch n.DataAtom {
		case atom.Thead:
			out = append(out, headsOf(n))
		case atom.P, atom.H2, atom.H3, atom.Pre, atom.Tr, atom.Caption, atom.Div, atom.Li:
			out = append(out, words(text(n)))
		}
	}
	return out
}

func headsOf(n *html.Node) string {
	var above, out []string
	for r := n.FirstChild; r != nil; r = r.NextSibling {
		if r.NextSibling == nil { // the last row has one head per column
			break
		}
		for c := range r.ChildNodes() {
			above = append(above, text(c))
			for _, a := range c.Attr {
				if n, err := strconv.Atoi(a.Val); err == nil && a.Key == "colspan" {
					above = append(above, make([]string, n-1)...)
				}
			}
		}
	}
	for c := range n.LastChild.ChildNodes() {
		if len(above) > 0 {
			out, above = append(out, above[0]), above[1:]
		}
		out = append(out, text(c))
	}
	return words(strings.Join(out, " "))
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		switch {
		case d.Type == html.TextNode:
			b.WriteString(d.Data)
		case slices.Contains([]atom.Atom{atom.Th, atom.Td, atom.Dl, atom.Dt, atom.Dd}, d.DataAtom):
			b.WriteString(" ")
		}
	}
	return b.String()
}

func words(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "→", " ")), " ")
}

// Only the heads of tables without heads may lack text.
func TestPageHasTheWholeDocument(t *testing.T) {
	study, err := published.Compare(published.Studies()[:1], nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]document.Document{
		"usual":  Report(usual()),
		"ladder": Report(climbed()),
		"trace":  Report(traced()),
		"mesh":   Report(meshReports()["mesh"]),
		"chat":   Report(routeReports()["chat"]), "published": PublishedDetails(study),
		"predict": Prediction(prediction(predict.Workload{Queries: 20, Bytes: 4096, QPS: 500})),
		"ports":   Ports(pricedPorts(), true), "empty": Report(head()),
	} {
		t.Run(name, func(t *testing.T) {
			root, _ := htmlOf(t, d)
			have, at := pageLines(root), 0
			for _, l := range documenttest.Lines(d) {
				want := words(l)
				i := slices.IndexFunc(have[at:], func(h string) bool {
					return h == want || strings.HasPrefix(h, want+" ")
				})
				switch {
				case want == "":
				case i < 0 && !slices.Contains(have, want):
					t.Errorf("not in the page: %s", l)
				case i < 0:
				default:
					at += i
				}
			}
		})
	}
}

// A page says which command it is of.
func TestPagesNameTheirCommand(t *testing.T) {
	for name, d := range everyKind(t) {
		root, _ := htmlOf(t, d)
		said := slices.ContainsFunc(slices.Collect(root.Descendants()), func(n *html.Node) bool {
			return slices.Contains(n.Attr, html.Attribute{Key: "class", Val: "command"}) &&
				strings.HasPrefix(text(n), "toll")
		})
		if !said {
			t.Errorf("%s: no command", name)
		}
	}
}

func TestPageEscapes(t *testing.T) {
	const attack = `</script><script>alert(1)</script><img src=x onerror=alert(2)>"'&<!--`
	r := usual()
	r.Environment.CPUModel, r.Plan.Baseline = attack, attack
	r.Warnings = append(r.Warnings, analysis.Warning{Code: "x", Text: attack})
	r.Skipped = append(r.Skipped, sample.Skip{Mode: attack, Reason: attack, Remedy: attack})
	r.Findings = append(r.Findings, attack)
	for i := range r.Cells {
		r.Cells[i].Tune, r.Cells[i].Dial = attack, attack
		r.Cells[i].Counted = []analysis.Counted{
			{Kind: attack, Name: attack, Where: attack, Hits: 1}}
		r.Cells[i].CPUs = []analysis.CPUUse{{Machine: attack, Idle: 1}}
	}
	root, page := htmlOf(t, Report(r))
	clean, _ := htmlOf(t, Report(usual()))
	count := func(n *html.Node, a atom.Atom) (found int) {
		for d := range n.Descendants() {
			if d.DataAtom == a {
				found++
			}
			for _, at := range d.Attr {
				if strings.HasPrefix(at.Key, "on") {
					t.Errorf("<%s> has %s", d.Data, at.Key)
				}
			}
		}
		return found
	}
	for _, a := range []atom.Atom{atom.Script, atom.Img, atom.Style, atom.Iframe} {
		if got, want := count(root, a), count(clean, a); got != want {
			t.Errorf("%d elements %s, want %d", got, a, want)
		}
	}
	if !slices.Contains(textsOf(root), attack) {
		t.Error("the text itself is lost")
	}
	_, after, _ := strings.Cut(page, `<script type="application/json" id="report">`)
	var report struct {
		Environment sample.Environment `json:"environment"`
	}
	if err := json.NewDecoder(strings.NewReader(after)).Decode(&report); err != nil ||
		report.Environment.CPUModel != attack {
		t.Errorf("the data has %q, %v", report.Environment.CPUModel, err)
	}
}

func TestPageHasTheReport(t *testing.T) {
	d := Report(usual())
	_, page := htmlOf(t, d)
	want := written(t, "json", d, format.Options{})
	_, after, _ := strings.Cut(page, `<script type="application/json" id="report">`)
	got, _, _ := strings.Cut(after, "</script>")
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(got), "", "  "); err != nil ||
		strings.TrimSpace(indented.String()) != strings.TrimSpace(want) {
		t.Errorf("%v: the page's data is not what --format json prints", err)
	}
	const most = 1_500_000
	if len(page) > most {
		t.Errorf("a usual page has %d bytes", len(page))
	}
}

func TestPageKeepsUnits(t *testing.T) {
	s := document.Section{Blocks: []document.Block{
		document.List{Topic: document.Answer, Items: []string{"bridge costs -88 % (80–90)."}},
		document.Paragraph{Text: document.Plainly("It took 30 s.")}}}
	root, _ := htmlOf(t, document.Document{Sections: []document.Section{s}})
	for _, want := range []string{"bridge costs -88\u00a0%\u00a0(80–90).", "It took 30\u00a0s."} {
		if got := textsOf(root); !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
}

// textsOf returns the texts between a page's tags.
func textsOf(root *html.Node) (out []string) {
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			out = append(out, strings.TrimSpace(n.Data))
		}
	}
	return out
}
