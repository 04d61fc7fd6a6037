package explain

import (
	"fmt"
	"slices"
	"strings"
)

//go:generate go test -run TestGlossary -update

// glossary returns the manual's page of all words except modes and loads, which have pages of their
// own, and metrics that no column shows. The page is Markdown.
func glossary() string {
	var b strings.Builder
	b.WriteString(`# Glossary

What ` + "`toll explain WORD`" + ` says, by subject. Modes are in [choosing a mode](choosing-a-mode.md), loads in [loads](loads.md); what a verdict
promises is in [method](method.md#what-a-verdict-promises).
`)
	var groups []string
	of := map[string][]Entry{}
	for _, e := range All() {
		if e.Group == Modes || e.Group == Loads || e.Group == Metrics && len(e.Also) == 0 {
			continue
		}
		if !slices.Contains(groups, e.Group) {
			groups = append(groups, e.Group)
		}
		of[e.Group] = append(of[e.Group], e)
	}
	cell := strings.NewReplacer("|", `\|`, "<", "&lt;")
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| word | meaning |\n|---|---|\n", g)
		for _, e := range of[g] {
			words := e.Name
			for i, w := range e.Also {
				if w != e.Name && !slices.Contains(e.Also[:i], w) {
					words += ", " + w
				}
			}
			words = cell.Replace(words)
			fmt.Fprintf(&b, "| %s | %s |\n", words, cell.Replace(strings.Join(e.Text, " ")))
		}
	}
	return b.String()
}
