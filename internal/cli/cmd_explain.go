package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/show/explain"
)

func newExplain(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [WORD]",
		Short: "Explain a word of the output",
		Long: `explain says in a few lines what a word of toll's output means: a verdict, a column,
a mode, a load, a warning, a trap, a flag of docker run, a figure of the JSON report.
Without a word it lists the words that it knows.`,
		Example: `  toll explain
  toll explain p99
  toll explain publish-proxy
  toll explain -p
  toll explain noise floor`,
		ValidArgsFunction:  oneOf(explainWords, one),
		DisableFlagParsing: true, // -p, -P and --budget are words, too
		RunE: func(c *cobra.Command, args []string) error {
			columns := min(helpWidth, terminalWidth(e.stdout))
			if len(args) > 0 && args[0] == "--" {
				args = args[1:]
			}
			switch {
			case len(args) == 1 && (args[0] == "--help" || args[0] == "-h"):
				return c.Help()
			case len(args) == 0:
				fmt.Fprint(e.stdout, explainList(columns))
			default:
				text, err := explained(strings.Join(args, " "), columns)
				if err != nil {
					return usage(err, explainHint(err))
				}
				fmt.Fprint(e.stdout, text)
			}
			return nil
		},
	}
}

func explainHint(err error) string {
	if h := hintOf(err, err); strings.HasPrefix(h, "did you mean") {
		return h
	}
	return "toll explain lists the words"
}

func explainWords() (out []string) {
	for _, x := range explain.All() {
		if !slices.Contains(out, x.Name) {
			out = append(out, x.Name)
		}
	}
	for _, c := range exitCodes {
		out = append(out, strings.Split(c.code, ", ")...)
	}
	return out
}

func explained(word string, columns int) (string, error) {
	for _, c := range exitCodes {
		if slices.Contains(strings.Split(c.code, ", "), word) {
			return "exit code: " + c.code + "\n" + wrap(sentenceOf(c.means), "  ", columns), nil
		}
	}
	found, err := explain.Find(word)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, x := range found {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(wrap(x.Title(), "", columns))
		for _, p := range x.Text {
			b.WriteString(wrap(p, "  ", columns))
		}
	}
	return b.String(), nil
}

func sentenceOf(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

func explainList(columns int) string {
	var b strings.Builder
	var groups []string
	words := map[string][]string{}
	for _, x := range explain.All() {
		if words[x.Group] == nil {
			groups = append(groups, x.Group)
		}
		if !slices.Contains(words[x.Group], x.Name) {
			words[x.Group] = append(words[x.Group], x.Name)
		}
	}
	for i, g := range groups {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(g + ":\n" + wrap(strings.Join(words[g], ", "), "  ", columns))
	}
	b.WriteString("\nExit codes:\n  toll explain 3, or toll help exit-codes\n")
	return b.String()
}
