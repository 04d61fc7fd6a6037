package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/gate"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/history"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
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
		return usage(fmt.Errorf("show takes the number of one run, not %d", len(args)),
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

func findHistory() (*history.Store, error) {
	s, err := history.Find(os.Getenv)
	if errors.Is(err, history.ErrNowhere) {
		return nil, &failure{exitFailed, errors.New(
			"there is no history: this user has no home directory"), "set XDG_STATE_HOME"}
	}
	return s, err
}

// listHistory returns the newest runs: the number last of them, or all if last is 0. It renews
// summaries of other versions.
func listHistory(last int) (trend.List, error) {
	s, err := findHistory()
	if err != nil {
		return trend.List{}, err
	}
	runs, err := s.Runs()
	if err != nil {
		return trend.List{}, fmt.Errorf("read the history: %w", err)
	}
	out := trend.List{Schema: trend.Schema, Dir: printable.Line(s.Dir), Total: len(runs),
		Runs: []trend.Entry{}}
	for k, r := range runs {
		if out.Size += r.Size; last > 0 && k >= last {
			continue
		}
		entry := trend.Entry{Number: k + 1, File: r.Name, Size: r.Size}
		if entry.Summary, err = summaryOf(s, r); errors.Is(err, fs.ErrNotExist) {
			continue // another toll removed it
		} else if err != nil {
			entry.Error, entry.Started = err.Error(), r.Began
		}
		out.Runs = append(out.Runs, entry)
	}
	return out, nil
}

func summaryOf(s *history.Store, r history.Run) (trend.Summary, error) {
	if b, err := s.Summary(r); err == nil {
		if out, ok := trend.Read(b, version); ok {
			return out, nil
		}
	}
	f, err := s.Open(r)
	if err != nil {
		return trend.Summary{}, err
	}
	defer f.Close()
	out, err := summarize(bufio.NewReader(f))
	if err != nil {
		return trend.Summary{}, err
	}
	if b, err := json.Marshal(out); err == nil {
		_ = s.Summarize(r, b) // only saves time later
	}
	return out, nil
}

func summarize(in *bufio.Reader) (trend.Summary, error) {
	if areRequests(in) {
		served, err := sample.ReadServed(in)
		if err != nil {
			return trend.Summary{}, err
		}
		return trend.SummarizeServed(served, version), nil
	}
	f, err := sample.Read(in)
	if err != nil {
		return trend.Summary{}, err
	}
	return trend.Summarize(f.Header, judge.Judge(f).Base(), version), nil
}

// openRun opens a kept run. is reports whether name has the form of a run's name, such as @1, and
// is not a file's name.
func openRun(name string) (f *os.File, is bool, err error) {
	digits, is := strings.CutPrefix(name, "@")
	n, errNumber := strconv.Atoi(digits)
	if _, errFile := os.Lstat(name); !is || errNumber != nil || errFile == nil {
		return nil, false, nil
	}
	s, err := findHistory()
	if err != nil {
		return nil, true, err
	}
	runs, err := s.Runs()
	if err == nil && (n < 1 || n > len(runs)) {
		hint := "toll history lists them; @1 is the newest"
		if len(runs) == 0 {
			hint = "toll compare adds one"
		}
		return nil, true, &failure{exitBadFile,
			fmt.Errorf("there is no run %s: the history has %d", name, len(runs)), hint}
	}
	if err == nil {
		f, err = s.Open(runs[n-1])
	}
	return f, true, err
}

// keep keeps a run in the history and returns its number, or 0 if it is not kept. A failure is
// only a warning.
func keep(e env, results []byte, f *sample.File, r judge.Report) (n int) {
	if r.Empty() {
		return 0
	}
	return store(e, results, trend.Summarize(f.Header, r.Base(), version))
}

// keepServed is keep for requests that were watched.
func keepServed(e env, x *sample.Served) (n int) {
	results, err := json.Marshal(x)
	if err != nil || x.Requests == 0 {
		return 0
	}
	return store(e, results, trend.SummarizeServed(x, version))
}

// store keeps a run, as keep does.
func store(e env, results []byte, now trend.Summary) (n int) {
	if historyEnv.set() {
		return 0
	}
	s, err := history.Find(os.Getenv)
	if errors.Is(err, history.ErrNowhere) {
		return 0
	}
	var summary []byte
	if err == nil {
		sayUnusual(e, s, now)
		summary, err = json.Marshal(now)
	}
	if err == nil {
		n, err = s.Keep(now.Started, results, summary)
	}
	if err != nil {
		n = 0
		warn(e, fmt.Sprintf(
			"this run is not kept in the history: %v; %s=%s turns the history off", err,
			historyEnv.name, historyEnv.value))
	}
	return n
}

// priorsOf returns what past runs show about the plan's cells, and about repetitions of the plan,
// or nil if the history cannot be read. It ignores runs that another version summarized.
func priorsOf(p sample.Plan, env sample.Environment) (priors, repeats []sample.Prior) {
	if historyEnv.set() {
		return nil, nil
	}
	s, err := history.Find(os.Getenv)
	if err != nil {
		return nil, nil
	}
	all := summaries(s, history.MostRuns, func(trend.Summary) bool { return true })
	return trend.Priors(all, p, env), trend.Repeats(all, p, env)
}

// summaries returns the newest summaries that are wanted, at most n, and reads no older ones. It
// ignores those of other versions, because their runs would have to be judged again.
func summaries(s *history.Store, n int, wanted func(trend.Summary) bool) (out []trend.Summary) {
	runs, _ := s.Runs() // an unreadable history has none
	for _, r := range runs {
		if len(out) == n {
			break
		}
		b, err := s.Summary(r)
		if x, ok := trend.Read(b, version); err == nil && ok && wanted(x) {
			out = append(out, x)
		}
	}
	return out
}

// sayUnusual warns if the machine is not in its usual state. It compares with the newest runs that
// have baselines.
func sayUnusual(e env, s *history.Store, now trend.Summary) {
	if len(now.Bases) == 0 {
		return
	}
	before := summaries(s, usualRuns, func(x trend.Summary) bool { return len(x.Bases) > 0 })
	var said []string
	for _, x := range trend.Unusual(now, before) {
		said = append(said, sentence.Unusual(x))
	}
	if len(said) > 0 {
		warn(e, "this machine is not in its usual state: "+strings.Join(
			said, "; ")+"; ratios may differ from those of earlier runs, too")
	}
}

const usualRuns = 20
