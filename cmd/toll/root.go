package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/lab"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/printable"
)

// Exit codes; the manual lists them.
const (
	exitOK        = 0
	exitFailed    = 1 // the run could not start or go on
	exitUsage     = 2 // the command line cannot be understood
	exitNothing   = 3 // nothing of what was asked for can be measured here
	exitCells     = 4 // measured, but some cells have no result; nobody serves the port
	exitBadFile   = 5 // a results file cannot be read
	exitSignalled = 128
)

// failure is an error with its exit code and, perhaps, a hint.
type failure struct {
	code int
	err  error // nil: all has been said
	hint string
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit %d", f.code)
	}
	return f.err.Error()
}
func (f *failure) Unwrap() error { return f.err }

// Hint is the remedy: the failure's own or that of the error inside.
func (f *failure) Hint() string {
	var h interface{ Hint() string }
	if f.hint == "" && errors.As(f.err, &h) {
		return h.Hint()
	}
	return f.hint
}

func usage(err error, hint string) error { return &failure{exitUsage, err, hint} }

// run runs the command line and returns the exit code.
func run(ctx context.Context, e env, args []string) int {
	root := newRoot(e)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	f := &failure{code: exitFailed, err: err}
	errors.As(err, &f)
	if err := unsaid(err); err != nil {
		// The door for text of flags and arguments.
		fmt.Fprintf(e.stderr, "toll: error: %s\n", printable.Line(path.OneLine(err)))
		if h := cmp.Or(f.Hint(), (&failure{err: err}).Hint()); h != "" {
			fmt.Fprintf(e.stderr, "toll: hint: %s\n", printable.Line(h))
		}
	}
	return f.code
}

// unsaid is what of an error is still to be said: not that a signal ended the run or
// what waited for it, which who sent it knows, but what went wrong besides.
func unsaid(err error) error {
	switch x := err.(type) { //nolint:errorlint // it is what wraps that is looked at
	case *failure:
		if x.code < exitSignalled {
			return x.err
		}
		return unsaid(x.err)
	case interface{ Unwrap() []error }:
		var rest []error
		for _, e := range x.Unwrap() {
			rest = append(rest, unsaid(e))
		}
		return errors.Join(rest...)
	}
	if errors.As(err, new(signaled)) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func newRoot(e env) *cobra.Command {
	compare := newCompare(e)
	root := &cobra.Command{
		Use:   "toll",
		Short: "What does your container network cost?",
		Long: `toll builds container network modes side by side, drives real traffic over each
in shuffled rounds, proves that the bytes took the claimed path, and says what
each mode costs in throughput, latency and CPU.

It needs neither root nor Docker, and touches nothing on this machine; --on docker
builds the modes with the machine's own Docker Engine instead.
Without a command it is "toll compare".`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noCommand,
		RunE:          compare.RunE,

		PersistentPreRunE: prepare,
	}
	root.SuggestionsMinimumDistance = 2
	root.Flags().AddFlagSet(compare.Flags())
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(err, "see "+c.CommandPath()+" --help")
	})
	root.AddCommand(compare, newLadder(e), newScale(e), newMesh(e), newRun(e), newStream(e), newSQL(e), newPublished(e), newModes(e), newPath(e), newPorts(e), newReport(e), newPredict(e), newImage(e), newClean(e), newAgent())
	return root
}

// noCommand refuses words that are no command, and says what may have been
// meant.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see toll --help"
	if _, err := parseModes(args[:1]); err == nil {
		hint = "toll compare " + strings.Join(args, " ")
	} else if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean: toll " + near[0]
	}
	return usage(fmt.Errorf("unknown command %q", args[0]), hint)
}

// inLab runs f where l can make network namespaces, and closes l: here, or in this program
// started again in a user namespace.
func inLab(ctx context.Context, l *lab.Lab, f func() error) (err error) {
	if l.MayBuild() {
		defer func() { err = errors.Join(err, l.Close()) }()
		return f()
	}
	code, err := lab.Enter(ctx, func(cause error) os.Signal {
		var s signaled
		if errors.As(cause, &s) {
			return s.Signal
		}
		return os.Interrupt
	})
	if err != nil {
		err = machine.Machine{}.ExplainUserNamespace(err)
		return &failure{code: exitNothing, err: err}
	}
	if code != exitOK {
		return &failure{code: code}
	}
	return nil
}
