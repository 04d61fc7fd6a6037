package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

func newReport(e env) *cobra.Command {
	var out outputFlags
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Read a results file and print its report",
		Long: `report reads a results file of --save, on any machine, and prints what the run printed.
"-" is standard input. The file of a run that was killed is read as far as it goes. Requests
of toll trace --attach, kept or written with --format json, are read, too.`,
		Example: `  toll report run.jsonl
  toll report run.jsonl --format json --output run.json
  ssh server cat run.jsonl | toll report -`,
		Args: oneArgument("results file", "toll report run.jsonl"),
		RunE: atOnce(func(c *cobra.Command, args []string) error {
			if err := out.check(place{"", args[0]}); err != nil {
				return err
			}
			return out.printFile(e, args[0], bufio.NewReader(c.InOrStdin()))
		}),
	}
	out.addDetails(c.Flags())
	out.add(c.Flags(), document.AReport)
	return c
}

// printFile prints the report of a results file, a kept run or the standard input, also if it has
// requests that were watched.
func (f *outputFlags) printFile(e env, name string, stdin *bufio.Reader) error {
	switch s, err := readServed(name, stdin); {
	case err != nil:
		return &failure{exitBadFile, fmt.Errorf("%s: %w", name, err), ""}
	case s != nil:
		if err := f.format.check(document.Requests); err != nil {
			return err
		}
		return f.print(e, view.Served(s))
	}
	file, err := readResults(e, name, stdin)
	if err != nil {
		return err
	}
	return f.printReport(e, judgeFile(e, file))
}

// readServed reads what toll trace --attach kept or wrote with --format json, or returns nil if the
// file or the standard input is none of that.
func readServed(name string, stdin *bufio.Reader) (*sample.Served, error) {
	in := stdin
	if name != "-" {
		f, kept, err := openRun(name)
		if !kept {
			if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
				return nil, nil
			}
			f, err = os.Open(name)
		}
		if err != nil {
			return nil, nil //nolint:nilerr // readResults says why
		}
		defer f.Close()
		in = bufio.NewReader(f)
	}
	if !areRequests(in) {
		return nil, nil
	}
	return sample.ReadServed(in)
}

// areRequests reports whether requests that were watched are next in an input.
func areRequests(in *bufio.Reader) bool {
	const opens = 64
	head, _ := in.Peek(opens) // fewer bytes are none of it, either
	m := schemaOf.FindSubmatch(head)
	return m != nil && string(m[1]) == "requests"
}

func judgeFile(e env, f *sample.File) judge.Report {
	bar := newProgress(e.stderr, false)
	defer bar.clear()
	bar.judging(len(f.Visits))
	return judge.Judge(f)
}

func readResults(e env, name string, stdin io.Reader) (*sample.File, error) {
	in, size := stdin, int64(0)
	if name != "-" {
		f, n, err := openResults(e, name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in, size = f, max(0, n)
	}
	bar := newProgress(e.stderr, false)
	from := &opening{Reader: bar.reading(in, size)}
	f, err := sample.Read(from)
	bar.clear()
	if err != nil {
		return nil, notResults(name, from.head, err)
	}
	return f, nil
}

// openResults opens a results file or a kept run. size is in bytes, or -1 if the file is not a
// regular one.
func openResults(e env, name string) (f *os.File, size int64, err error) {
	f, kept, err := openRun(name)
	if !kept {
		f, err = openInput(e, name)
	}
	switch {
	case kept && err != nil:
		return nil, 0, err
	case err != nil:
		return nil, 0, unopened(name, err)
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return f, info.Size(), nil
	}
	return f, -1, nil
}

// unopened returns the failure to open a results file, with a hint that fits the error.
func unopened(name string, err error) error {
	f := &failure{exitBadFile, err, ""}
	_, noDir := os.Stat(filepath.Dir(name))
	switch {
	case name == "":
		f.err, f.hint = errors.New("the name of the results file is empty"), "toll report run.jsonl"
	case errors.Is(err, fs.ErrPermission):
		f.hint = mayRead
	case !errors.Is(err, fs.ErrNotExist):
	case strings.HasPrefix(name, "@"):
		f.hint = "runs of the history have names such as @1, the newest: toll history lists them"
	case noDir == nil:
		f.hint = sample.CommandLine([]string{"compare", "--save", name}) + " makes one"
	}
	return f
}

const mayRead = "run toll as a user who may read it"

// opening keeps the first bytes of what is read.
type opening struct {
	io.Reader
	head []byte
}

const openingSize = 4 << 10

func (s *opening) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	s.head = append(s.head, b[:min(n, openingSize-len(s.head))]...)
	return n, err
}

// notResults returns the failure to read a results file. If the file, which begins with head, is
// another one of toll's, the error says which.
func notResults(name string, head []byte, err error) error {
	hint := cmp.Or(ownHint(err), "a results file is what toll compare --save writes")
	if errors.Is(err, syscall.EISDIR) {
		err = errors.New("it is a directory")
	}
	if what, other := otherFile(head); what != "" {
		err, hint = fmt.Errorf("this is %s, not a results file", what), other
	}
	return &failure{exitBadFile, fmt.Errorf("%s: %w", name, err), hint}
}

var schemaOf = regexp.MustCompile(`^\s*\{\s*"schema": ?"bridgetoll\.([a-z-]+)/`)

// otherFile returns the words for a file of toll's that is no results file, and a hint; "" for
// others.
func otherFile(head []byte) (what, hint string) {
	hint = "toll reads what --save writes, and the runs that toll history lists; " +
		"--format is for other programs"
	is := func(prefix string) bool {
		return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte(prefix))
	}
	m := schemaOf.FindSubmatch(head)
	switch {
	case m != nil && string(m[1]) == "machine", is("\x1f\x8b"):
		return "a machine that toll ports --save wrote", "toll ports --from-file FILE judges it"
	case m != nil && string(m[1]) == "requests":
		return "what toll trace --attach PORT keeps", "toll report FILE shows it"
	case m != nil && string(m[1]) != "results":
		return fmt.Sprintf("the %s of --format json", m[1]), hint
	case is("study,"):
		return "the output of --format csv", hint
	case is("# HELP toll_"):
		return "the output of --format openmetrics", hint
	case is("Unit ") && bytes.Contains(head, []byte("\nBenchmark")):
		return "the output of --format benchfmt", hint
	case is("<?xml ") && bytes.Contains(head, []byte("<testsuites>")):
		return "the output of --format junit", hint
	case is("<!doctype html>"), is("<!DOCTYPE html>"):
		return "the page of --format html", hint
	}
	return "", ""
}
