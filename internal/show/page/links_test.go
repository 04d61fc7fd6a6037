package page

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Many links stand in a list that is folded up, and all of them lead to their charts.
func TestLinksToCharts(t *testing.T) {
	for _, n := range []int{mostLinks, mostLinks + 1} {
		p := document.Page{Facts: []document.FactGroup{{Title: "Machine"}}}
		for i := range n {
			p.Groups = append(p.Groups, document.ChartGroup{Title: fmt.Sprintf("group %d", i+1)})
		}
		var b bytes.Buffer
		d := document.Document{Page: func() document.Page { return p }}
		if err := Write(&b, d); err != nil {
			t.Fatal(err)
		}
		_, nav, _ := strings.Cut(b.String(), "<nav")
		nav, _, _ = strings.Cut(nav, "</nav>")
		folded := fmt.Sprintf("<summary>%d groups of charts</summary>", n)
		if strings.Contains(nav, folded) != (n > mostLinks) {
			t.Errorf("%d groups: %s", n, nav)
		}
		for i := range n {
			if link := fmt.Sprintf(`<a href="#charts-%d">group %d</a>`, i+1, i+1); strings.Count(
				nav, link) != 1 {
				t.Errorf("%d groups: no link %s in %s", n, link, nav)
			}
		}
	}
}
