package page

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Cells of a table without numbers have their heads, which narrow screens show beside them.
func TestTablesOfWords(t *testing.T) {
	words := document.Table{Columns: []document.Column{{Head: [2]string{"", "port"}},
		{Head: [2]string{"this machine, at", "::1"}, Span: 2}, {Head: [2]string{"", "own"}},
		{Head: [2]string{"a con-", "tainer"}}},
		Rows: []document.Row{{Cells: document.Texts("80/tcp", "", "proxy", "direct")}}}
	got := string(tableOf(words))
	if want := `<div class="wide words" role="group" tabindex="0" ` +
		"aria-label=\"Table\"><table>\n<thead><tr><th scope=\"col\"></th><th " +
		`scope="colgroup" colspan="2">this machine, at</th><th scope="col"></th></tr><tr><th ` +
		`scope="col">port</th><th scope="col">::1</th><th scope="col">own</th><th ` +
		"scope=\"col\">a container</th></tr></thead>\n<tbody>\n<tr><th " +
		`scope="row">80/tcp</th><td data-head="this machine, at ::1"></td><td ` +
		`data-head="this machine, at own">proxy</td><td data-head="a ` +
		"container\">direct</td></tr>\n</tbody>\n</table></div>"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	numbers := words
	numbers.Rows = []document.Row{{Cells: append(document.Texts("80/tcp", "", ""),
		document.Cell{Text: "1", Number: &document.Number{Value: 1}})}}
	one := words
	one.Columns, one.Rows = words.Columns[:1], []document.Row{{Cells: document.Texts("a")}}
	for _, tt := range []struct {
		document.Table
		want string
	}{{numbers, `<div class="wide" role="group" tabindex="0" ` +
		"aria-label=\"Table\"><table>\n<thead><tr><th scope=\"col\"></th><th " +
		`scope="colgroup" colspan="2">this machine, at</th><th scope="col"></th></tr><tr><th ` +
		`scope="col">port</th><th scope="col">::1</th><th scope="col">own</th><th ` +
		"scope=\"col\">a container</th></tr></thead>\n<tbody>\n<tr><th " +
		`scope="row">80/tcp</th><td></td><td></td><td><data ` +
		"value=\"1\">1</data></td></tr>\n</tbody>\n</table></div>"}, {one,
		`<div class="wide" role="group" tabindex="0" ` +
			"aria-label=\"Table\"><table>\n<thead><tr><th scope=\"col\">port</th></tr></thead>\n" +
			"<tbody>\n<tr><th scope=\"row\">a</th></tr>\n</tbody>\n</table></div>"}} {
		if got := string(tableOf(tt.Table)); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
