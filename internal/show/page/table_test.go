package page

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// Cells of a wide table without numbers have their heads, which narrow screens show beside them.
func TestTablesOfWords(t *testing.T) {
	words := document.Table{Columns: []document.Column{{Head: [2]string{"", "port"}},
		{Head: [2]string{"this machine, at", "::1"}, Span: 2}, {Head: [2]string{"", "own"}},
		{Head: [2]string{"a con-", "tainer"}}},
		Rows: []document.Row{{Cells: document.Texts("80/tcp", "", "proxy", "direct")}}}
	got := string(tableOf(words))
	for _, want := range []string{`class="wide words"`, `<th scope="row">80/tcp</th>`,
		`<td data-head="this machine, at ::1"></td>`, `<td data-head="this machine, at own">proxy</td>`,
		`<td data-head="a container">direct</td>`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	numbers := words
	numbers.Rows = []document.Row{{Cells: append(document.Texts("80/tcp", "", ""),
		document.Cell{Text: "1", Number: &document.Number{Value: 1}})}}
	few := words
	few.Columns, few.Rows = words.Columns[:3], []document.Row{{Cells: document.Texts("a", "b", "c")}}
	for _, table := range []document.Table{numbers, few} {
		if got := string(tableOf(table)); strings.Contains(got, "words") ||
			strings.Contains(got, "data-head") {
			t.Error(got)
		}
	}
}
