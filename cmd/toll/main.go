// Toll tells what a container network costs, proves it and explains it.
//
// It builds network modes side by side from the kernel's own parts, drives
// real traffic over each in shuffled rounds, witnesses that the bytes took
// the claimed path, and reports what each mode costs. docs/README.md is its
// manual.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	_ "github.com/bridgetoll/bridgetoll/internal/measure/worker/start" // a worker ends there
)

// env is what a command has of the outside.
type env struct {
	stdout, stderr io.Writer
	args           []string // the command line, without toll itself
}

func main() {
	argv, err := asPlugin(os.Args)
	if err == nil {
		argv, err = asKubectl(argv)
	}
	if err != nil {
		os.Exit(internal(err))
	}
	os.Args = argv // what toll starts of itself is started with them, and is no plug-in
	os.Exit(start(os.Args[1:]))
}

// start runs toll, or the part of it that another toll started.
func start(args []string) int {
	if len(args) > 0 && args[0] == program.Arg {
		return internal(program.Main(os.Stdin, os.Stdout))
	}
	if len(args) > 0 && args[0] == endpoint.Arg {
		return internal(endpoint.Main(os.Stdin, os.Stdout, locateServers()))
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

// signaled is the cause of a context that a signal ended.
type signaled struct{ syscall.Signal }

func (s signaled) Error() string { return "stopped by signal: " + s.String() }

// untilSignal returns a context that ends with the first signal that asks
// the process to stop.
func untilSignal() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		if s, ok := (<-signals).(syscall.Signal); ok {
			cancel(signaled{s})
		}
		// Not at once: without root there are two of us, and a terminal's
		// Ctrl-C reaches the inner one twice.
		time.Sleep(time.Second)
		signal.Reset() // from now on a signal ends the process
	}()
	return ctx, cancel
}
