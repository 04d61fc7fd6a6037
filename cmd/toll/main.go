// Toll tells what a container network costs, proves it and explains it.
//
// It builds network modes side by side from the kernel's own parts, drives
// real traffic over each in shuffled rounds, witnesses that the bytes took
// the claimed path, and reports what each mode costs. docs/manual.md is its
// manual.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/bridgetoll/bridgetoll/internal/lab/relay"
	"github.com/bridgetoll/bridgetoll/internal/worker"
)

// version is the tool's, written to every results file.
const version = "0.1.0"

// env is what a command has of the outside.
type env struct {
	stdout, stderr io.Writer
}

func main() { os.Exit(start(os.Args[1:])) }

// start runs toll, or the part of it that another toll started.
func start(args []string) int {
	if len(args) > 0 {
		switch args[0] {
		case worker.Arg:
			return internal(worker.Main(os.Stdin, os.Stdout))
		case "proxy":
			const ready = 3
			return internal(relay.Run(context.Background(), args[1:], os.NewFile(ready, "ready")))
		}
	}
	ctx, cancel := untilSignal()
	defer cancel(nil)
	return run(ctx, env{os.Stdout, os.Stderr}, args)
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
	}()
	return ctx, cancel
}
