package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/build/lab"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// run runs the command line and returns the exit code.
func run(ctx context.Context, e env, args []string) int {
	root := newRoot(e)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if said := unsaid(err); said != nil {
		// The door for text of flags and arguments.
		fmt.Fprintf(e.stderr, "toll: error: %s\n", printable.Line(path.OneLine(said)))
		if h := hintOf(err, said); h != "" {
			fmt.Fprintf(e.stderr, "toll: hint: %s\n", printable.Line(h))
		}
	}
	return exitCode(err)
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
	if os.Getenv(dockerEnv) != "" {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "docker " + root.Name()}
	}
	root.SuggestionsMinimumDistance = 2
	root.Flags().AddFlagSet(compare.Flags())
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(compare, newLadder(e), newScale(e), newMesh(e), newRun(e), newStream(e), newSQL(e), newPublished(e), newModes(e), newPath(e), newPorts(e), newReport(e), newPredict(e), newImage(e), newClean(e), newAgent(), newVersion(e), newMan())
	root.AddCommand(newDiff(e), newGate(e))
	completeFormats(root)
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
