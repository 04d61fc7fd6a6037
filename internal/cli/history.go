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

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/trend"
	"github.com/bridgetoll/bridgetoll/internal/record/history"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

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

// priorsOf returns what past runs show about the plan's cells, and about repetitions of the plan, or
// nil if the history cannot be read. It ignores runs that another version summarized.
func priorsOf(p sample.Plan, env sample.Environment) (priors, repeats []sample.Prior) {
	if historyEnv.set() {
		return nil, nil
	}
	s, err := history.Find(os.Getenv)
	if err != nil {
		return nil, nil
	}
	runs, err := s.Runs()
	if err != nil {
		return nil, nil
	}
	var all []trend.Summary
	for _, r := range runs {
		b, err := s.Summary(r)
		if err != nil {
			continue
		}
		if x, ok := trend.Read(b, version); ok {
			all = append(all, x)
		}
	}
	return trend.Priors(all, p, env), trend.Repeats(all, p, env)
}

// sayUnusual warns if the machine is not in its usual state. It compares with the newest runs that
// have baselines, and ignores summaries of other versions, because their runs would have to be
// judged again.
func sayUnusual(e env, s *history.Store, now trend.Summary) {
	runs, _ := s.Runs() // an unreadable history gives no warning
	var before []trend.Summary
	for _, r := range runs {
		if len(now.Bases) == 0 || len(before) == usualRuns {
			break
		}
		b, err := s.Summary(r)
		if x, ok := trend.Read(b, version); err == nil && ok && len(x.Bases) > 0 {
			before = append(before, x)
		}
	}
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
