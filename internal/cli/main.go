// Package cli is the command line of toll: flags, requests, and one file for each subcommand.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	_ "github.com/bridgetoll/bridgetoll/internal/measure/worker/start" // runs workers
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/docker"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	_ "github.com/bridgetoll/bridgetoll/internal/reach/replica/start" // holds copies of machines
)

// Main runs toll, or the part of it that another toll started, with os.Args, and returns the exit
// code. It rewrites os.Args where toll is a plugin of another command. k is zero in programs
// without Kubernetes' client, which hand such runs over to the one with it.
func Main(k cluster.Kubernetes) int {
	kubernetes = k
	argv, err := asPlugin(os.Args)
	if err == nil {
		argv, err = asKubectl(argv)
	}
	if err != nil {
		return internal(err)
	}
	os.Args = argv // the parts that toll starts of itself get these arguments
	return start(os.Args[1:])
}

// start runs toll, or the part of it that another toll started, and returns the exit code.
func start(args []string) int {
	if len(args) > 0 && args[0] == program.Arg {
		return internal(program.Main(os.Stdin, os.Stdout))
	}
	if len(args) > 0 && args[0] == endpoint.Arg {
		return internal(endpoint.Main(os.Stdin, os.Stdout, locateServers()))
	}
	if len(args) > 0 && args[0] == observe.Arg {
		return internal(observe.Serve(os.Stdin, os.Stdout))
	}
	for _, b := range backends {
		if b.inner == nil {
			continue
		}
		if ours, err := b.inner(args); ours {
			return internal(err)
		}
	}
	if len(args) == 1 && args[0] == pluginMetadata {
		return internal(printMetadata(os.Stdout))
	}
	ctx, cancel := untilSignal()
	defer cancel(nil)
	if err := endWithDocker(cancel); err != nil {
		return internal(err)
	}
	return run(ctx, env{stdout: os.Stdout, stderr: os.Stderr}, args)
}

func internal(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return exitOK
}

// ending are the signals that end a run after its clean-up. SIGQUIT (Ctrl-\) would leave the
// terminal to the full-screen views' settings.
var ending = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// untilSignal returns a context that ends at the first signal of ending. It also catches SIGPIPE,
// which would kill the process before it has cleaned up. A write to an output that nobody reads
// then returns an error, which the command's output handles. SIGPIPE does not end the context,
// because the loss of any pipe or connection sends it.
func untilSignal() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, ending...)
	go func() {
		if s, ok := (<-signals).(syscall.Signal); ok {
			cancel(signaled{s})
		}
		// Wait before resetting: without root there are two tolls, and a Ctrl-C from a terminal
		// reaches the inner one twice.
		time.Sleep(time.Second)
		signal.Reset(ending...)
	}()
	return ctx, cancel
}

// inLab runs f, in this process or in this program started again in a user namespace, and then
// closes l.
func inLab(ctx context.Context, l *lab.Lab, f func() error) (err error) {
	if l.MayBuild() {
		defer func() { err = errors.Join(err, l.Close()) }()
		return f()
	}
	code, err := lab.Enter(ctx, signalOf)
	if err != nil {
		err = machine.Machine{}.ExplainUserNamespace(err)
	}
	return resultOf(code, err)
}

// signalOf returns the signal to send to the toll in a user namespace, given why the context ended.
func signalOf(cause error) os.Signal {
	var s signaled
	if errors.As(cause, &s) {
		return s.Signal
	}
	return os.Interrupt
}

// resultOf returns the result of the toll that ran in place of this one.
func resultOf(code int, err error) error {
	switch {
	case err != nil:
		return &failure{code: exitNothing, err: err}
	case code != exitOK:
		return &failure{code: code}
	}
	return nil
}

// enterEngine runs toll again in the user namespace of this environment's Docker Engine or Podman,
// if that is rootless and toll may enter its containers only there. If entered is true, err is that
// run's.
func enterEngine(ctx context.Context, podman bool) (entered bool, err error) {
	pid := docker.UserNamespace(podman)
	if pid == 0 || lab.Entered() || rootless.Entered() {
		return false, nil
	}
	if podman { // as root there, toll would use root's service
		if err := os.Setenv("CONTAINER_HOST", dockerapi.FindPodman(os.Getenv)); err != nil {
			return true, err
		}
	}
	code, err := rootless.Enter(ctx, pid, signalOf)
	return true, resultOf(code, err)
}
