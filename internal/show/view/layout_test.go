package view

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/browsertest"
)

// layout looks for faults in the pages of the document's frames.
//
//go:embed testdata/layout.js
var layout string

// The widths are those of a desktop, of a phone, and of what margins leave of an A4 sheet.
var pageWidths = []int{1200, 400, onPaper}

const onPaper = 690

// layoutFaults returns what is wrong with the pages at each width, in the light or the dark theme,
// and with printed ones.
func layoutFaults(t *testing.T, pages map[string]string, dark bool) []string {
	t.Helper()
	dir := t.TempDir()
	var frames strings.Builder
	for i, name := range slices.Sorted(maps.Keys(pages)) {
		file := fmt.Sprintf("%d.html", i)
		if err := os.WriteFile(filepath.Join(dir, file), []byte(pages[name]), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, width := range pageWidths {
			medium := ""
			if width == onPaper {
				medium = ` data-print="1" scrolling="no"`
			}
			fmt.Fprintf(&frames,
				`<iframe name="%s, %d px" width="%d" height="3000"%s src="%s"></iframe>`,
				html.EscapeString(name), width, width, medium, file)
		}
	}
	all := filepath.Join(dir, "all.html")
	if err := os.WriteFile(all, []byte("<!doctype html><style>iframe { border: 0 }</style>"+
		frames.String()+"<script>"+layout+"</script>"), 0o644); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--window-size=1400,1000", "--allow-file-access-from-files"}
	if dark {
		flags = append(flags, "--blink-settings=preferredColorScheme=0")
	}
	drawn, log := browsertest.Run(t, "file://"+all, flags...)
	root, err := html.Parse(strings.NewReader(string(drawn)))
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Frames int
		Found  []string
		Dark   bool
	}
	for n := range root.Descendants() {
		if slices.Contains(n.Attr, html.Attribute{Key: "id", Val: "found"}) {
			if err := json.Unmarshal([]byte(text(n)), &out); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out.Frames != len(pages)*len(pageWidths) || out.Dark != dark {
		t.Fatalf("%d frames, dark %t: %s", out.Frames, out.Dark, log)
	}
	return out.Found
}

func TestPagesAreLegible(t *testing.T) {
	pages := map[string]string{}
	for name, d := range everyKind(t) {
		if strings.HasPrefix(name, "mesh ") && !strings.HasSuffix(name, "-racks") {
			continue // the largest has what the others have
		}
		pages[name] = written(t, "html", d, format.Options{})
	}
	for name, d := range map[string]document.Document{"gate": Gate(gated(t)), "path": Path(witnessed()),
		"history": History(past()), "trend": Trends(past(), nil, false),
		"modes": Modes([]Mode{{Mode: "publish-nat", Paths: []ModePath{{From: "remote-container",
			To: "address", Here: true}, {From: "host", To: "loopback", Missing: "no image"}}}})} {
		pages[name] = written(t, "html", d, format.Options{})
	}
	for _, dark := range []bool{false, true} {
		for _, what := range layoutFaults(t, pages, dark) {
			t.Errorf("dark %t: %s", dark, what)
		}
	}
}

// Each kind of fault is found in a page that has it.
func TestLayoutFaultsAreFound(t *testing.T) {
	page := func(body string) string {
		return `<!doctype html><style>html { background: #fff; color: #000 }</style>` + body
	}
	svg := func(marks string) string {
		return page(`<svg width="200" height="60">` + marks + `</svg>`)
	}
	found := layoutFaults(t, map[string]string{
		"over": page(`<p style="position: absolute; top: 0">one text</p>` +
			`<p style="position: absolute; top: 8px">another</p>`),
		"wide": page(`<p style="width: 3000px">` + strings.Repeat("word ", 300) + `</p>`),
		"pale": page(`<p style="color: #aaa">pale</p>`),
		"cut":  svg(`<text x="180" y="20">a long label</text>`),
		"line": svg(`<g aria-label="rule"><line x1="30" x2="30" y1="0" y2="60"/></g>` +
			`<text x="10" y="30">crossed</text>`),
		"mark": svg(`<rect x="0" y="0" width="200" height="60" fill="#333"/>` +
			`<text x="10" y="30">dark on dark</text>`),
		"base": svg(`<line aria-label="100 %" x1="30" x2="30" y1="0" y2="60"/>` +
			`<text x="100" y="20">200 %</text>`),
		"beyond": svg(`<text x="10" y="20">bar</text><rect x="150" y="30" width="90" height="9"/>`),
		"alike":  svg(`<text x="10" y="20">publ…oxy</text><text x="10" y="50">publ…oxy</text>`),
		"key": page(`<div><ul class="legend"><li><span class="swatch" style="background: red"></span>red` +
			`</li></ul><svg width="90" height="20"><rect width="9" height="9" fill="blue"/></svg></div>`),
		"empty": page(""),
		"paper": page(`<style>@media print { p { color: #aaa } }</style><p>pale on paper</p>` +
			`<div class="wide" tabindex="0" style="overflow-x: auto; background: linear-gradient(red, red) ` +
			`0 / 0 local"><p style="margin-left: 1100px; width: 400px">` +
			`scrolled to</p></div>`),
		"unkeyed": page(`<div style="overflow-x: auto"><p style="width: 1300px">scrolls</p></div>`),
		"unseen":  page(`<div tabindex="0" style="overflow-x: auto"><p style="width: 1300px">scrolls</p></div>`),
		"nameless": page(`<div tabindex="0" style="overflow-x: auto"><table style="width: 1300px"><tbody>` +
			`<tr><th scope="row">bridge</th><td>1</td></tr></tbody></table></div>`),
		"worded": page(`<div class="words" tabindex="0" style="overflow-x: auto">` +
			`<p style="width: 1300px">proxy</p></div>`),
		"broken": page(`<table style="width: 20px"><tbody><tr><th style="overflow-wrap: anywhere">direct` +
			`</th><td>a table</td></tr></tbody></table>`),
		"folded": page(`<details class="list"><summary>9 of them</summary><p>item</p></details>`),
		"twice": page(`<figure><div class="drawing">chart</div><details open><table><tr><td>1</td>` +
			`</tr></table></details></figure>`),
		"dotted": svg(`<g aria-label="dot"><circle cx="30" cy="22" r="3"/></g>` +
			`<text x="10" y="26">a label</text>`),
		"scale": svg(`<g aria-label="x-axis tick label"><text x="90" y="12">0 %</text></g>` +
			`<g aria-label="dot"><circle cx="30" cy="40" r="3"/><circle cx="60" cy="40" r="3"/></g>`),
		"right": svg(`<text x="10" y="20">right</text>`),
	}, false)
	if !slices.Contains(found, "paper, 690 px: contrast 2.3: pale on paper ()") ||
		!slices.Contains(found, "paper, 690 px: beyond the page: scrolled to ()") ||
		slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, "paper, 1200") }) {
		t.Errorf("what only paper shows: %q", found)
	}
	for name, want := range map[string]string{"over": "text over text", "wide": "the page is",
		"pale": "contrast 2.3", "cut": "cut by its drawing", "line": "a line through",
		"mark": "contrast", "base": "no label for the line",
		"beyond": "a mark cut by its drawing", "alike": "labels cut to one", "key": "nothing has the key",
		"empty": "no text", "dotted": "text over a dot", "scale": "one figure is no scale",
		"unkeyed": "no key scrolls", "unseen": "nothing shows that it scrolls",
		"nameless": "a row's name scrolls out", "worded": "words scroll out",
		"broken": "a broken word"} {
		if !slices.ContainsFunc(found, func(s string) bool {
			return strings.HasPrefix(s, name+", 400 px: "+want)
		}) {
			t.Errorf("%s: not found", name)
		}
	}
	for _, want := range []string{"folded, 690 px: not on paper: item ()",
		"twice, 690 px: twice on paper: 1 ()"} {
		if !slices.Contains(found, want) {
			t.Errorf("not found: %s", want)
		}
	}
	if slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, "right") }) {
		t.Errorf("faults of a page that has none: %q", found)
	}
}
