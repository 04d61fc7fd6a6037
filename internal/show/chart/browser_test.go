package chart

import (
	"bytes"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/page"
	"github.com/bridgetoll/bridgetoll/internal/testing/browsertest"
)

// hostile is a possible name in a results file. The policy must block smuggled even if it gets into
// the page.
const (
	hostile  = `<img src="http://192.0.2.1/a" onerror="document.title='owned'">`
	smuggled = `<script>document.title = "owned"</script><img src="http://192.0.2.1/b" alt="">`
)

func everyChart(t *testing.T) []document.ChartGroup {
	every := slices.Concat(Cells(comparison(t).Base()), Cells(varying(t)), Ladder(climbed(t)),
		Crowds(crowds(t).Base()), Mesh(cluster()), Trace(traced()),
		publishedGroups(besidePublished()), differenceGroups(changed(t)),
		[]document.ChartGroup{{Title: "Tokens", Charts: tokenCharts(t)},
			{Title: "Cut", Charts: []document.Chart{cutChart()}}})
	every[0].Charts[0].Spec.(intervals).Rows[0].Label = hostile
	return every
}

// dump returns the drawn document, what the browser logged and the requests that it sent.
func dump(t *testing.T, text []byte) (root *html.Node, console, requests []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			// updates and time of the browser
			if !strings.Contains(r.Host, ".google") && !strings.Contains(r.Host, ".gvt1.com") {
				requests = append(requests, r.Method+" "+r.RequestURI)
			}
			w.WriteHeader(http.StatusBadGateway)
		}))
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		proxy.Listener = l
	}
	proxy.Start()
	defer proxy.Close()
	out, log := browsertest.Run(t, "file://"+file, "--proxy-server="+proxy.URL,
		"--proxy-bypass-list=<-loopback>", "--window-size=1000,800")
	for l := range strings.Lines(string(log)) {
		if strings.Contains(l, "CONSOLE") {
			console = append(console, strings.TrimSpace(l))
		}
	}
	root, err := html.Parse(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return root, console, slices.Clone(requests)
}

// The policy blocks both smuggled things and logs that, which shows that the test would see any
// other message.
func TestInABrowser(t *testing.T) {
	every := everyChart(t)
	var b bytes.Buffer
	err := page.Write(&b, document.Document{
		Kind: document.AReport, JSON: map[string]string{"name": hostile},
		Page: func() document.Page { return document.Page{Groups: every} }})
	if err != nil {
		t.Fatal(err)
	}
	root, console, requests := dump(t, bytes.Replace(
		b.Bytes(), []byte("</main>"), []byte(smuggled+"</main>"), 1))
	blocked := func(l string) bool { return strings.Contains(l, "Content Security Policy") }
	if len(console) != 2 || !blocked(console[0]) || !blocked(console[1]) || len(requests) > 0 {
		t.Errorf("the console has %q, requests are %q", console, requests)
	}
	for n := range root.Descendants() {
		if n.Data == "title" && n.FirstChild != nil && n.FirstChild.Data == "owned" ||
			has(n, "onerror") {
			t.Error("foreign text ran")
		}
		if attr(n, "id") == "download" && (!strings.HasPrefix(attr(n, "href"), "blob:") ||
			has(n, "hidden")) {
			t.Error("there is no download")
		}
	}
	kinds := map[string]int{}
	for i, g := range every {
		for k, c := range g.Charts {
			if c.Kind == "" {
				continue
			}
			id := fmt.Sprintf("chart-%d-%d", i+1, k+1)
			t.Run(id+"-"+c.Kind, func(t *testing.T) {
				svg := find(byID(root, id), func(n *html.Node) bool {
					return attr(n, "role") == "img"
				})
				if svg == nil || attr(svg, "aria-label") != c.Title {
					t.Fatalf("%s is not drawn", c.Title)
				}
				drawn(t, svg, c)
			})
			kinds[c.Kind]++
		}
	}
	if len(kinds) != 9 {
		t.Errorf("charts are %v", kinds)
	}
}

func drawn(t *testing.T, svg *html.Node, c document.Chart) {
	marks := labelled(svg)
	var values, places []float64
	at := func(label string, value float64, axis int) {
		m, ok := marks[label]
		if !ok {
			t.Errorf("no mark %q among %v", label, len(marks))
			return
		}
		values, places = append(values, value), append(places, m[axis])
	}
	switch s := c.Spec.(type) {
	case intervals:
		for _, r := range s.Rows {
			_, ok := marks[r.Label+": "+r.Text]
			if none := r.None || !r.Varies && s.Limits != nil && r.Value > s.Limits[1]; none || r.Varies {
				if none == ok {
					t.Errorf("%s has a mark: %t", r.Label, ok)
				}
				continue
			}
			at(r.Label+": "+r.Text, r.Value, 0)
			if r.Beside != nil && r.Verdict != "" {
				at(fmt.Sprintf("%s, published: %s", r.Label, analysis.Percent(*r.Beside)),
					*r.Beside, 0)
			}
		}
		if find(svg, func(n *html.Node) bool {
			return n.Type == html.TextNode && n.Data == map[bool]string{
				false: "100 %", true: "0 %"}[s.Change]
		}) == nil {
			t.Error("the axis has no label for the line")
		}
	case strips:
		for _, r := range s.Rows {
			for _, p := range r.Points {
				at(fmt.Sprintf("%s, %s %v: %v", r.Label, s.Axis, p[0], p[1]), p[0], 0)
			}
		}
	case lines:
		for _, r := range s.Series {
			for _, p := range r.Points {
				if slices.Contains([]float64{50, 90, 99, 99.9}, p[0]) {
					at(fmt.Sprintf("%s, percentile %v: %v", r.Label, p[0], p[1]),
						-math.Log10(1-p[0]/100), 0)
				}
			}
		}
	case stacks:
		for _, r := range s.Rows {
			for i, x := range r.Values {
				if x > 0 {
					label := fmt.Sprintf("%s, %s: %v", r.Label, s.Parts[i], x)
					if m := marks[label]; m != nil {
						values, places = append(values, x), append(places, m[2])
					} else {
						t.Errorf("no mark %q", label)
					}
				}
			}
		}
	case trips:
		for _, x := range s.Trips {
			for _, b := range x.Bars {
				at(x.Label+", "+x.Lanes[b.Lane]+", "+b.Text, b.From, 0)
			}
			// Beside the bars the labels need space; above them they need none.
			const above, letter = 8, 5 // px, the least
			if bar := places[len(places)-len(x.Bars)]; x.Bars[0].From == 0 && bar > above+1 &&
				bar < letter*float64(len(x.Label)) {
				t.Errorf("%q is cut: the bars begin at %v", x.Label, bar)
			}
		}
	case tokenCurves:
		for _, r := range s.Routes {
			for _, p := range r.Steps {
				token := fmt.Sprintf("%s, token %d ", r.Label, p.Token)
				at(token+fmt.Sprintf("left the server: %v", p.Left), p.Left, 0)
				at(token+fmt.Sprintf("read by the client: %v", p.Read), p.Read, 0)
			}
		}
		if n := len(pathsOf(svg, "area")); n != len(s.Routes) {
			t.Errorf("%d routes, filled areas: %d", len(s.Routes), n)
		}
		lines := pathsOf(svg, "line")
		if len(lines) != 2*len(s.Routes) {
			t.Errorf("%d routes, curves: %d", len(s.Routes), len(lines))
		}
		for _, p := range lines {
			if !steps(attr(p, "d")) {
				t.Errorf("tokens seem to come during a gap: %q", attr(p, "d"))
			}
		}
	case falls:
		for _, r := range s.Rows {
			at(r.Label+": "+r.Text, min(r.From, r.To), 0)
		}
	case growths:
		for _, g := range s.Series {
			for _, p := range g.Points {
				at(fmt.Sprintf("%s, %s: %v", g.Label, p.Shape, p.Value), p.Value, 1)
			}
		}
	case heats:
		for _, h := range s.Cells {
			label := fmt.Sprintf("%s to %s: %s", s.Nodes[int(h[0])], s.Nodes[int(h[1])],
				threeDigits(h[2]))
			if h[3] > 0 {
				label += ", explained by a fault"
			}
			at(label, h[1], 0)
		}
	default:
		t.Fatalf("no check for %T", s)
	}
	linear(t, values, places)
}

// Places must be linear within a pixel or two: bars are inset by fractions of one.
func linear(t *testing.T, values, places []float64) {
	if len(values) < 2 {
		t.Fatalf("%d marks", len(values))
	}
	low, high := slices.Index(values, slices.Min(values)), slices.Index(values, slices.Max(values))
	slope := 0.0
	if values[high] > values[low] {
		slope = (places[high] - places[low]) / (values[high] - values[low])
		if math.Abs(places[high]-places[low]) < 20 {
			t.Errorf("all marks are within %.1f px", math.Abs(places[high]-places[low]))
		}
	}
	for i, x := range values {
		if want := places[low] + slope*(x-values[low]); math.Abs(places[i]-want) > 2 {
			t.Errorf("%v is at %.1f, want %.1f", x, places[i], want)
		}
	}
}

var moved = regexp.MustCompile(`translate\(([-\d.e]+),\s*([-\d.e]+)\)`)

// x, y and width are in px. Marks in a translated facet are relative to the page.
func labelled(n *html.Node) map[string][]float64 {
	out := map[string][]float64{}
	var walk func(n *html.Node, x, y float64)
	walk = func(n *html.Node, x, y float64) {
		if m := moved.FindStringSubmatch(attr(n, "transform")); m != nil {
			x, y = x+number(m[1]), y+number(m[2])
		}
		if l := attr(n, "aria-label"); l != "" && n.Data != "g" && n.Data != "svg" {
			out[l] = []float64{x + number(attr(n, "x")) + number(attr(n, "cx")),
				y + number(attr(n, "y")) + number(attr(n, "cy")), number(attr(n, "width"))}
		}
		for c := range n.ChildNodes() {
			walk(c, x, y)
		}
	}
	walk(n, 0, 0)
	return out
}

func number(s string) float64 {
	x, _ := strconv.ParseFloat(s, 64) // "": 0
	return x
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

func find(n *html.Node, is func(*html.Node) bool) *html.Node {
	if n == nil {
		return nil
	}
	for d := range n.Descendants() {
		if is(d) {
			return d
		}
	}
	return nil
}

// pathsOf returns the paths of the marks that Plot calls by a name.
func pathsOf(n *html.Node, mark string) (out []*html.Node) {
	for d := range n.Descendants() {
		if d.Data == "g" && attr(d, "aria-label") == mark {
			for p := range d.Descendants() {
				if p.Data == "path" {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

func byID(root *html.Node, id string) *html.Node {
	return find(root, func(n *html.Node) bool { return attr(n, "id") == id })
}

// steps reports whether a path's lines are level or upright.
func steps(path string) bool {
	last := ""
	for _, point := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("MLZ", r) }) {
		x, y, _ := strings.Cut(point, ",")
		lastX, lastY, some := strings.Cut(last, ",")
		if some && x != lastX && y != lastY {
			return false
		}
		last = point
	}
	return last != ""
}
