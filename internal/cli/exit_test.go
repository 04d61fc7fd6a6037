package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/plan"
)

func TestExitCode(t *testing.T) {
	missing := &machine.UnsupportedError{Missing: "the kernel", Remedy: "another one"}
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"none", nil, exitOK},
		{"any", errors.New("odd"), exitFailed},
		{"usage", fmt.Errorf("a: %w", usage(errors.New("b"), "")), exitUsage},
		{"unsupported", fmt.Errorf("mesh: %w", missing), exitNothing},
		{"headroom", fmt.Errorf("toll itself: %w", &machine.HeadroomError{}), exitNothing},
		{"nothing-measurable", &plan.NothingError{}, exitNothing},
		{"nothing-built", &engine.NothingBuiltError{Err: errors.New("no")}, exitNothing},
		{"said-otherwise", &failure{exitFailed, missing, ""}, exitFailed},
		{"joined", errors.Join(&failure{code: exitSignalled + int(syscall.SIGTERM)},
			errors.New("left behind")), 143},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := exitCode(tt.err); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// Whatever a signal interrupts may return the context's cause or its error.
func TestExitCodeOfSignals(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	bad := errors.New("cannot be removed")
	for _, tt := range []struct {
		name    string
		stopped bool
		err     error
		want    int
	}{
		{"running", false, context.Canceled, exitFailed},
		{"cause", true, fmt.Errorf("look: %w", signaled{syscall.SIGTERM}), 143},
		{"error", true, fmt.Errorf("look: %w", context.Canceled), 143},
		{"done", true, nil, exitOK},
		{"incomplete", true, &failure{code: exitCells}, exitCells},
		{"failed-before", true, bad, exitFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.stopped {
				cancel(signaled{syscall.SIGTERM})
			}
			err := stoppedBy(ctx, tt.err)
			if got := exitCode(err); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
			if said := unsaid(err) != nil; said != errors.Is(tt.err, bad) {
				t.Errorf("said: %v", unsaid(err))
			}
		})
	}
	cancel(nil)
}

func TestHelpExitCodes(t *testing.T) {
	var got, want []string
	for _, c := range exitCodes {
		got = append(got, c.code)
	}
	for _, code := range []int{exitOK, exitFailed, exitUsage, exitNothing, exitCells, exitBadFile,
		exitWorse, exitUnclear, exitUnjudged} {
		want = append(want, fmt.Sprint(code))
	}
	want = append(want, fmt.Sprintf("%d, %d, %d, %d", exitSignalled+int(syscall.SIGINT),
		exitSignalled+int(syscall.SIGTERM), exitSignalled+int(syscall.SIGHUP),
		exitSignalled+int(syscall.SIGQUIT)),
		fmt.Sprint(exitSignalled+int(syscall.SIGPIPE)))
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
