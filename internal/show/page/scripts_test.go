package page

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// The lines of a script are one text, which can be copied.
func TestScriptsAreOneText(t *testing.T) {
	got := string(sectionOf(document.Section{Blocks: []document.Block{
		document.Command{Line: "for x in a b; do"}, document.Command{Line: "  echo $x"},
		document.Command{Line: "done"}, document.Paragraph{Text: document.Plainly("or")},
		document.Command{Line: "echo a"}}}))
	if want := "<section>\n<pre><code>for x in a b; do\n  echo " +
		"$x\ndone</code></pre>\n<p>or</p>\n<pre><code>echo a</code></pre>\n</section>\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
