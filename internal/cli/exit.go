package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

const (
	exitOK        = 0
	exitFailed    = 1 // the run could not start or continue
	exitUsage     = 2 // the command line is invalid
	exitNothing   = 3 // nothing requested can be measured here
	exitCells     = 4 // measured, but some cells have no result; nothing serves the port
	exitBadFile   = 5 // a results file cannot be read
	exitWorse     = 6 // --fail-above is certainly exceeded; a gate's sentence is certainly false
	exitUnclear   = 7 // a gate's sentence is neither certainly true nor certainly false
	exitUnjudged  = 8 // --fail-above could judge nothing
	exitSignalled = 128
)

var exitCodes = []struct{ code, means string }{
	{"0", "done"},
	{"1",
		"the run could not start or go on; what was measured is printed; the output could not be written; toll view: there is no terminal; toll ports --try: the commands failed"},
	{"2",
		"the command line cannot be understood, or --save or --output names a file that exists, without --force"},
	{"3",
		"nothing that was requested can be measured here, or turned on by toll fast: the error names what is missing; or other programs use the CPUs that are needed"},
	{"4",
		"measured, but some rows (of a mesh: nodes or links) have no result, or lost it: they are listed as failed; a route to your server broke and did not come back; failures cut the run short; toll ports PORT: this machine's own connection to the port fails or contradicts the report; toll fast on: some ports got no shortcut or some links were not raised (they are listed); toll diff --fail-above, toll gate: the results file lacks a result that is asked for"},
	{"5",
		"a results file, or one of toll ports --save, cannot be read, or has nothing that was requested"},
	{"6",
		"toll diff --fail-above: something is certainly worse by more than the limit; toll gate: a sentence is violated with certainty; toll ports --expect: a line fails; toll ports --try: a client would lose a port"},
	{"7",
		"toll gate: a sentence is neither certainly true nor certainly false; toll diff --fail-above: what looks worse was measured in another state of the machine; toll ports --expect: a line is not certain; toll ports --try: a change is not certain"},
	{"8",
		"toll diff --fail-above: nothing could be judged: no ratio that both runs have is certain enough"},
	{"130, 143, 129, 131",
		"ended by SIGINT, SIGTERM, SIGHUP, SIGQUIT; what was measured is printed"},
	{"141", "ended by SIGPIPE: nobody reads the output any more"},
}

func exitCode(err error) int {
	var f *failure
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &f):
		return f.code
	case errors.Is(err, machine.ErrUnsupported), errors.As(err, new(*machine.HeadroomError)),
		errors.As(err, new(*engine.NothingBuiltError)), errors.As(err, new(*plan.NothingError)):
		return exitNothing
	}
	return exitFailed
}

type failure struct {
	code int
	err  error // nil: nothing more is printed
	hint string
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit %d", f.code)
	}
	return f.err.Error()
}
func (f *failure) Unwrap() error { return f.err }

// Hint returns the failure's remedy, or else the wrapped error's.
func (f *failure) Hint() string { return cmp.Or(f.hint, ownHint(f.err)) }

// ownHint returns the hint of an error that has one, or "".
func ownHint(err error) string {
	if own := hint.Of(err); own != "" {
		return own
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return vantage.CheckName
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" &&
		strings.HasPrefix(op.Net, "tcp") {
		return vantage.DialHint(err)
	}
	return ""
}

func usage(err error, hint string) error { return &failure{exitUsage, err, hint} }

// hintOf returns the hint of the first failure in err, or else of said, then the hint about
// anything left behind.
func hintOf(err, said error) string {
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{err: err}
	}
	hint := cmp.Or(f.Hint(), ownHint(said))
	switch left := leftHint(err); {
	case hint == "" || left == hint:
		return cmp.Or(hint, left)
	case left != "":
		hint += "; " + left
	}
	return hint
}

func leftHint(err error) string {
	var left interface {
		Left()
		Hint() string
	}
	if !errors.As(err, &left) {
		return ""
	}
	return left.Hint()
}

// unsaid returns err without a signal and its consequences.
func unsaid(err error) error {
	switch x := err.(type) { //nolint:errorlint // the wrapping itself is examined
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

func interrupted(ctx context.Context) error {
	var stop signaled
	if !errors.As(context.Cause(ctx), &stop) {
		return nil
	}
	return &failure{code: exitSignalled + int(stop.Signal)}
}

// stoppedBy returns the error of a command whose context was ctx. If it has no other cause than a
// signal, it has the signal's exit code.
func stoppedBy(ctx context.Context, err error) error {
	if stop := interrupted(ctx); stop != nil && err != nil && exitCode(err) == exitFailed &&
		unsaid(err) == nil {
		return errors.Join(stop, err)
	}
	return err
}

// atOnce makes the first signal end the command, even while it waits for a pipe or a terminal. f
// must not need to clean up, because it goes on in the background until the process exits.
func atOnce(f func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		done := make(chan error, 1)
		go func() { done <- f(c, args) }()
		select {
		case err := <-done:
			return err
		case <-c.Context().Done():
			if err := interrupted(c.Context()); err != nil {
				return err
			}
			return context.Cause(c.Context())
		}
	}
}

// signaled is the cause of a context that a signal ended.
type signaled struct{ syscall.Signal }

// byRoot returns the user's command line, quoted for a shell, as root can enter it.
func byRoot(e env) string { return remedy.AsRoot(sample.CommandLine(e.args)) }

func (s signaled) Error() string { return "stopped by signal: " + s.String() }
