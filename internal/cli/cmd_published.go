package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/judge/published"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

func newPublished(e env) *cobra.Command {
	var out outputFlags
	var against []string
	c := &cobra.Command{
		Use:   "published [STUDY…]",
		Short: "Compare published measurements with yours",
		Long: `published shows five published comparisons of container networks, and the commands
that measure the same here. With --against it prints the figures and ratios of your
results files next to the published ones, and says which findings hold. --details adds
doubts about each study, and the time of each CPU.

Studies: ` + strings.Join(published.Names(), ", ") + ".",
		Example: `  toll published
  toll published docker-networking-on-linux --against run.jsonl`,
		ValidArgs: published.Names(),
		RunE: atOnce(func(c *cobra.Command, args []string) error {
			var files []place
			for _, name := range against {
				files = append(files, place{"against", name})
			}
			if err := out.check(files...); err != nil {
				return err
			}
			studies, err := findStudies(args)
			if err != nil {
				return err
			}
			measured, err := readMeasured(e, against, c.InOrStdin())
			if err != nil {
				return err
			}
			r, err := published.Compare(studies, measured)
			if err != nil {
				return err
			}
			if out.whole() {
				return out.print(e, view.PublishedDetails(r))
			}
			return out.print(e, view.Published(r))
		}),
	}
	add(c.Flags(), flagDef{name: againstFlag, group: toMeasure, value: list(&against), word: "FILE",
		help:  "results files to compare the published ratios with (toll compare --save)",
		files: resultsFile})
	out.addDetails(c.Flags())
	out.add(c.Flags(), document.AComparison)
	return c
}

// findStudies returns all studies if names is empty.
func findStudies(names []string) ([]published.Study, error) {
	if len(names) == 0 {
		return published.Studies(), nil
	}
	wanted, err := parseAll(names, closed("study", published.Names()...))
	if err != nil {
		return nil, err
	}
	var out []published.Study
	for _, s := range published.Studies() {
		if slices.Contains(wanted, s.Name) {
			out = append(out, s)
		}
	}
	return out, nil
}

func readMeasured(e env, names []string, stdin io.Reader) ([]published.Input, error) {
	var out []published.Input
	for _, n := range names {
		f, err := readResults(e, n, stdin)
		if err != nil {
			return nil, err
		}
		out = append(out, published.Input{Name: n, File: f})
	}
	return out, nil
}
