package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// run runs the command line and returns the exit code.
func run(ctx context.Context, e env, args []string) int {
	e.args = args
	root := newRoot(e)
	root.SetArgs(args)
	defer sayWaiting(e.stderr)()
	err := root.ExecuteContext(ctx)
	if said := unsaid(err); said != nil {
		// All text from flags and arguments passes through here.
		say(e.stderr, "toll: error: "+printable.Line(path.OneLine(said)))
		if h := hintOf(err, said); h != "" {
			say(e.stderr, "toll: hint: "+printable.Line(h))
		}
	}
	return exitCode(err)
}

func newRoot(e env) *cobra.Command {
	compare := newCompare(e)
	root := &cobra.Command{
		Use:   "toll",
		Short: "What does your container network cost?",
		Long: `toll says what a container's network mode costs. It builds the modes side by side,
sends real traffic over each, proves from packet counters that the bytes took the
expected path, and reports throughput, latency and CPU time with 95 % intervals.

It needs neither root nor Docker, and changes nothing on this machine: the modes
are built in private network namespaces. --on docker builds them with the
machine's own Docker Engine instead.`,
		Example: `  toll                                Docker's usual modes, in a minute
  toll compare bridge publish-proxy   two modes against --network host
  toll run --recipe redis             the usual modes under a real Redis
  toll ports 8080                     who answers a port, and by which route
  toll explain p99                    what a word of the output means`,
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
	root.Flags().AddFlagSet(compare.Flags())
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(compare, newLadder(e), newAdvise(e), newScale(e), newMesh(e), newRun(e), newStream(e), newSQL(e), newPublished(e), newModes(e), newPath(e), newPorts(e), newReport(e), newPredict(e), newImage(e), newClean(e), newAgent(), newVersion(e), newMan())
	root.AddCommand(newDiff(e), newGate(e), newView(e))
	root.AddCommand(newFast(e))
	root.AddCommand(newExplain(e))
	root.AddCommand(newHistory(e))
	root.AddCommand(newKubernetes(e))
	forKubectl(root)
	completeValues(root)
	addTopics(root)
	helpful(root)
	return root
}

// noCommand refuses words that are no command, and suggests the one that was probably meant.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := seeHelp(c)
	if _, err := parseModes(args, backendNames()); err == nil {
		hint = "toll compare " + strings.Join(args, " ")
	} else if near := suggest.Words(args[0], commandNames(c)); len(near) > 0 {
		hint = "did you mean toll " + strings.Join(near, " or toll ") + "?"
	} else if h := hintOf(err, err); strings.HasPrefix(h, "did you mean ") {
		hint = strings.Replace(h, "did you mean ", "did you mean toll compare ", 1)
	}
	return usage(fmt.Errorf("unknown command %q", args[0]), hint)
}

// commandNames returns the commands that help lists.
func commandNames(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

// inLab runs f where l can make network namespaces, and then closes l: in this process, or in this
// program started again in a user namespace.
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
