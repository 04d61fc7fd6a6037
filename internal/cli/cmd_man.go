package cli

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a manual page for each command",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(fmt.Errorf("man takes one directory, %d were given", len(args)),
					"toll man ~/.local/share/man/man1")
			}
			return nil
		},
		RunE: atOnce(func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeMan(c.Root(), args[0])
		}),
	}
}

// writeMan writes the pages with the date of the build's commit, so that the same toll always
// writes the same pages.
func writeMan(root *cobra.Command, dir string) error {
	date, err := time.Parse(time.RFC3339, stamped(debug.ReadBuildInfo()).time)
	if err != nil {
		date = time.Unix(0, 0).UTC()
	}
	source := "toll"
	// Other versions are too long for a page's footer.
	if release, _, other := strings.Cut(version, "-"); !other {
		source += " " + release
	}
	asMarkdown(root)
	return doc.GenManTree(root, &doc.GenManHeader{
		Section: "1",
		Date:    &date,
		Source:  source,
		Manual:  "toll",
	}, dir)
}

// asMarkdown escapes a command's texts, so that Markdown shows them literally.
func asMarkdown(c *cobra.Command) {
	c.DisableAutoGenTag = true
	c.Short, c.Long = escape(c.Short), escape(c.Long)
	for _, sub := range c.Commands() {
		asMarkdown(sub)
	}
}

// escape escapes Markdown's characters. Indented lines, such as lists of exit codes, stay
// unchanged.
func escape(text string) string {
	special := strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, "`", "\\`")
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "  ") {
			lines[i] = "    " + l // a Markdown code block
		} else {
			lines[i] = special.Replace(l)
		}
	}
	return strings.Join(lines, "\n")
}
