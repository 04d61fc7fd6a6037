package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// Users copy commands, which may be wider.
func TestHelpFits(t *testing.T) {
	const columns = 60
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		commands := ""
		for line := range strings.Lines(c.Example + "\n") {
			name, _, _ := hung(strings.TrimRight(line, "\n"))
			commands += name + "\n"
		}
		for line := range strings.Lines(helpOf(c, columns, true)) {
			line = strings.TrimRight(line, "\n")
			if ansi.StringWidth(line) > columns && !testgolden.HasLine(commands, line) &&
				len(strings.Fields(line)) > 1 {
				t.Errorf("%s: %d columns: %q", c.CommandPath(), ansi.StringWidth(line), line)
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(env{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}))
}

func TestSay(t *testing.T) {
	text := "toll: error: the mode overlay-encrypted cannot be built here, because the kernel " +
		"has no ESP (12 µs)"
	var b bytes.Buffer
	if say(&b, text); b.String() != text+"\n" {
		t.Errorf("%q", b.String())
	}
	lines := format.Wrap(text, 60)
	for _, l := range lines {
		if ansi.StringWidth(l) > 60 {
			t.Errorf("%d columns: %q", ansi.StringWidth(l), l)
		}
	}
	if strings.Join(strings.Fields(strings.Join(lines, " ")), " ") != text {
		t.Errorf("%q", lines)
	}
}
