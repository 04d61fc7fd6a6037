package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/judge/difference"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

func newDiff(e env) *cobra.Command {
	var out outputFlags
	var failAbove float64
	c := &cobra.Command{
		Use:   "diff [OLD NEW]",
		Short: "Show what differs between two runs",
		Long: `diff compares two results files of the same study, or runs of the history (@1 is the
newest). Without names it compares the newest kept run with the last one before it
that measured the same modes and loads. It lists what else
differs (machine, loads, paths), then the change of each mode's ratio to the baseline,
with a 95 % interval and a verdict. Absolute figures follow; they are not judged, because
they depend on the machine's state. If the baseline's own figure differs by more than
10 %, the machine was in another state, and what looks worse or better counts as unclear.
Of two runs of toll trace --attach, kept or written with --format json, it compares the
parts of a request's time.

With --fail-above it also fails if a mode of the old run has no result in the new one, or
if nothing could be judged; each case has an exit code of its own.`,
		Example: `  toll compare; toll compare; toll diff
  toll diff @3 @1
  toll diff old.jsonl new.jsonl --fail-above 5%`,
		Args: twoOrNone,
		RunE: atOnce(func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				var err error
				if args, err = newestPair(); err != nil {
					return err
				}
			}
			if err := out.check(place{"", args[0]}, place{"", args[1]}); err != nil {
				return err
			}
			stdin := bufio.NewReader(c.InOrStdin())
			judged := c.Flags().Changed("fail-above")
			if done, err := out.printServed(e, args, stdin, judged); done || err != nil {
				return err
			}
			r, err := differenceOf(e, args[0], args[1], stdin)
			if err != nil {
				return err
			}
			if judged {
				r.FailAbove(failAbove)
			}
			shown := view.DifferenceSummary
			if out.whole() {
				shown = view.Difference
			}
			if err := out.print(e, typed(shown(r), e)); err != nil || !judged {
				return err
			}
			return worseThan(r, failAbove)
		}),
	}
	out.addMore(c.Flags(), "also print all figures, and those of each run")
	out.add(c.Flags(), document.ADifference)
	add(c.Flags(), flagDef{name: "fail-above", group: toWrite, value: shareFlag(&failAbove, 0.05),
		help: fmt.Sprintf(
			"exit %d if a ratio is certainly worse by more than this, %d if nothing could be judged",
			exitWorse, exitUnjudged)})
	c.Flags().Lookup("fail-above").DefValue = "" // without the flag nothing fails
	return c
}

func twoOrNone(_ *cobra.Command, args []string) error {
	if len(args) != 0 && len(args) != 2 {
		return usage(fmt.Errorf("diff takes two results files or none, not %d", len(args)),
			"toll diff old.jsonl new.jsonl; toll diff alone takes the newest kept run and the last one "+
				"like it")
	}
	if len(args) > 0 && args[0] == "-" && args[1] == "-" {
		return usage(errors.New("only one of the two runs can be standard input"),
			"give the other as a file")
	}
	return nil
}

// servedDifference compares two files that toll trace --attach kept or wrote. It returns nil
// if one of them is none.
func servedDifference(before, after string, stdin *bufio.Reader) (*difference.Served, error) {
	var read [2]*sample.Served
	for i, name := range []string{before, after} {
		s, err := readServed(name, stdin)
		if err != nil {
			return nil, &failure{exitBadFile, fmt.Errorf("%s: %w", name, err), ""}
		}
		if read[i] = s; s == nil {
			return nil, nil
		}
	}
	return difference.JudgeServed(before, read[0], after, read[1]), nil
}

// printServed compares two files of toll trace --attach, and reports whether they are. judged means
// that --fail-above was given.
func (f *outputFlags) printServed(e env, names []string, stdin *bufio.Reader,
	judged bool) (done bool, err error) {
	s, err := servedDifference(names[0], names[1], stdin)
	switch {
	case err != nil || s == nil:
		return false, err
	case judged:
		return true, usage(errors.New(
			"--fail-above judges ratios, and requests that were watched have none"),
			sample.CommandLine(append([]string{"diff"}, names...)))
	}
	return true, f.print(e, view.ServedDifference(s))
}

func differenceOf(e env, before, after string, stdin io.Reader) (*difference.Report, error) {
	old, err := readResults(e, before, stdin)
	if err != nil {
		return nil, err
	}
	now, err := readResults(e, after, stdin)
	if err != nil {
		return nil, err
	}
	if reflect.DeepEqual(old, now) {
		warn(e, fmt.Sprintf("%s and %s are the same run", before, after))
	}
	r, err := difference.Judge(difference.Input{Name: before, File: old},
		difference.Input{Name: after, File: now})
	if err != nil {
		return nil, &failure{exitBadFile, fmt.Errorf(
			"%s and %s cannot be compared: %w", before, after, err), ""}
	}
	return r, nil
}

// newestPair returns the names (@N) of the newest run and of the last run that is comparable with
// it.
func newestPair() ([]string, error) {
	l, err := listHistory(0)
	if err != nil {
		return nil, err
	}
	old, now, ok := trend.Alike(l)
	switch {
	case ok:
		return []string{old.Name(), now.Name()}, nil
	case now.Number == 0:
		return nil, &failure{exitBadFile, errors.New("the history has no run to compare"),
			"run toll compare twice, or name two results files"}
	}
	hint := "run it again, or name two runs: toll history lists them"
	if old, before, ok := trend.NewestAlike(l); ok {
		hint = fmt.Sprintf("toll diff %s %s compares the newest two that are alike", old.Name(),
			before.Name())
	}
	if now.Plan == "" {
		return nil, &failure{exitBadFile, fmt.Errorf(
			"the newest run, %s, is a mesh, which has no rows to compare", now.Name()), hint}
	}
	return nil, &failure{exitBadFile, fmt.Errorf(
		"no earlier run measured the same modes and loads as the newest, %s (%s)", now.Name(),
		now.CommandLine()), hint}
}

// worseThan returns a failure if a ratio is certainly worse by more than share, or if a cell with a
// result before has none now.
func worseThan(r *difference.Report, share float64) error {
	switch {
	case len(r.Failing) > 0:
		return &failure{code: exitWorse}
	case len(r.OnlyOld) > 0:
		return &failure{code: exitCells}
	case r.Undecided(share):
		return &failure{code: exitUnclear}
	case r.Unjudged(share):
		return &failure{code: exitUnjudged}
	}
	return nil
}
