package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/judge/gate"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/history"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

func newHistory(e env) *cobra.Command {
	var out outputFlags
	var last int
	c := &cobra.Command{
		Use:   "history",
		Short: "List the runs that toll kept, and draw their trends",
		Long: fmt.Sprintf(`history lists the runs that were kept, the newest first. Every run that measures
something is kept in $XDG_STATE_HOME/bridgetoll-history (or in ~/.local/state): the
last %d, of the last %d days, of at most %d MiB together, and the last %d however
old they are. With %s=off in the environment none is, and toll learns from none.

@1 is the newest run, @2 the one before, for every command that reads a results file.`, history.MostRuns, history.MostDays,
			history.MostBytes>>20, history.Ageless, historyEnv.name),
		Example: `  toll history
  toll history show 1
  toll diff @2 @1
  toll history trend bridge`,
		Args: noArguments,
		RunE: atOnce(func(*cobra.Command, []string) error {
			if err := out.check(); err != nil {
				return err
			}
			l, err := listHistory(last)
			if err != nil {
				return err
			}
			return out.print(e, view.History(l))
		}),
	}
	addLast(c.Flags(), &last, "list this many; 0: all")
	out.add(c.Flags(), document.AHistory)
	c.AddCommand(newHistoryShow(e), newHistoryTrend(e), newHistoryClear(e))
	return c
}

func addLast(fl *pflag.FlagSet, to *int, help string) {
	add(fl, flagDef{name: "last", group: toRead, value: wholeFlag(to, 20, 0, unlimited[int]()),
		help: help})
}

func newHistoryShow(e env) *cobra.Command {
	var out outputFlags
	c := &cobra.Command{
		Use:   "show N",
		Short: "Report a run: 1 is the newest",
		Args:  oneRun,
		RunE: atOnce(func(_ *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return out.printFile(e, "@"+strings.TrimPrefix(args[0], "@"), nil)
		}),
	}
	out.addDetails(c.Flags())
	out.add(c.Flags(), document.AReport)
	return c
}

func oneRun(_ *cobra.Command, args []string) error {
	const example = "toll history show 1 reports the newest run"
	if len(args) != 1 {
		return usage(fmt.Errorf("show takes the number of one run, %d were given", len(args)),
			example)
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(args[0], "@")); err != nil || n < 1 {
		return usage(fmt.Errorf("%q is not the number of a run", args[0]), example)
	}
	return nil
}

func newHistoryTrend(e env) *cobra.Command {
	var out outputFlags
	var last int
	c := &cobra.Command{
		Use:   "trend [MODE…]",
		Short: "Draw the ratios of modes over the runs",
		Long: `trend shows how the ratios to the baseline changed over the kept runs: a line for
each, or, if there are few of them, each run with its interval. MODE is a mode, a
variant such as bridge+gro=on, or an endpoint's name.`,
		Example: `  toll history trend
  toll history trend bridge
  toll history trend bridge+gro=on --details`,
		RunE: atOnce(func(_ *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			l, err := listHistory(last)
			if err != nil {
				return err
			}
			names, err := parseTrends(l, args)
			if err != nil {
				return err
			}
			return out.print(e, view.Trends(l, names, out.details))
		}),
	}
	addLast(c.Flags(), &last, "draw this many runs; 0: all")
	out.addMore(c.Flags(), "each run of every ratio, with its interval")
	out.add(c.Flags(), document.AHistory)
	return c
}

func parseTrends(l trend.List, words []string) ([]string, error) {
	var own []string
	for _, r := range l.Runs {
		own = append(own, r.Modes...)
		for _, row := range r.Rows {
			own = append(own, row.Label)
		}
	}
	return parseAll(words, func(word string) (string, error) {
		n, err := gate.ParseName(word, own)
		return n.String(), err
	})
}

func newHistoryClear(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "clear",
		Short: "Remove all runs that were kept",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			s, err := findHistory()
			if err != nil {
				return err
			}
			n, err := s.Clear()
			if err != nil {
				return fmt.Errorf("clear the history: %w", err)
			}
			say(e.stdout, fmt.Sprintf("removed %s from %s", units.Plural(n, "run"), s.Dir))
			return nil
		},
	}
}
