// Command man writes a manual page for each of toll's commands to a directory.
//
//	man DIR
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/bridgetoll/bridgetoll/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// write writes the pages with the date of the build's commit, so that the same commit always gives
// the same pages.
func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, version, date := cli.Manual()
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
