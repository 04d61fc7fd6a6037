// Command truth shows that toll's results are true: it finds identical modes the same, it finds and
// sizes planted differences, and its results do not depend on the length of slices, their order,
// the other cells of the run, or the tool that measures.
//
//	go run ./cmd/toll-truth [-only aa,peers] [-quick | -full] [-toll FILE]
//
// Each check prints one line for each run on the standard error and, when it is done, a table in
// Markdown. The exit status is 1 if a row does not hold. Each row shows the evidence: a row whose
// interval is too wide to tell does not hold.
//
// It needs root, two CPUs, and the programs nft, tc, iperf3 and qperf.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	_ "github.com/bridgetoll/bridgetoll/internal/measure/worker/start" // runs workers
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
)

func main() { os.Exit(start(os.Args[1:])) }

const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// start runs the checks, or the part of a run that they started from this binary.
func start(args []string) int {
	if len(args) == 0 {
		return run(os.Stdout, os.Stderr, args)
	}
	var err error
	switch args[0] {
	case becomeArg:
		err = become(args[1:])
	case burnArg:
		err = startBurning(args[1:])
	default:
		ours, inner := lab.Inner(args)
		if !ours {
			return run(os.Stdout, os.Stderr, args)
		}
		err = inner
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailure
	}
	return exitOK
}

// becomeArg, followed by a command line, makes this process execute that program. A place can only
// start this program, so other programs are started through it.
const becomeArg = "become"

func become(args []string) error {
	if len(args) == 0 {
		return errors.New("become: no program")
	}
	file, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return syscall.Exec(file, args, os.Environ())
}

// startBurning burns CPU time for the share of the time that is the only argument.
func startBurning(args []string) error {
	if len(args) != 1 {
		return errors.New("burn: no share of the time")
	}
	share, err := strconv.ParseFloat(args[0], 64)
	if err != nil || !(share > 0 && share <= 1) {
		return fmt.Errorf("burn: the share %q", args[0])
	}
	burn(share)
	return nil
}

type options struct {
	only       []string
	scale      scale
	seed       uint64
	congestion string
	toll       string
}

func parse(stderr io.Writer, args []string) (options, error) {
	var (
		o           options
		only        string
		quick, full bool
		runs        int
	)
	f := flag.NewFlagSet("truth", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&only, "only", "", "make these `checks` only, with commas between: "+strings.Join(names(), ","))
	f.BoolVar(&quick, "quick", false, "few and short runs, to try the checks out: most rows will be too wide to tell")
	f.BoolVar(&full, "full", false, "as many and as long runs as the numbers of docs/method.md rest on: more than two hours")
	f.IntVar(&runs, "runs", 0, "so many runs of aa and of each planted difference (default as the scale has it)")
	f.Uint64Var(&o.seed, "seed", 1, "seed of all orders")
	f.StringVar(&o.congestion, "congestion", "reno", "congestion `control` of the lab where toll and others are compared, and of aa; precision takes toll as it is")
	f.StringVar(&o.toll, "toll", "", "use this toll instead of building one (`file`)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if quick && full {
		return o, errors.New("-quick and -full: one of them")
	}
	if runs < 0 {
		return o, fmt.Errorf("-runs %d: must not be negative", runs)
	}
	o.scale = scaleOf(quick, full, runs)
	o.only = names()
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	for _, n := range o.only {
		if !slices.Contains(names(), n) {
			return o, fmt.Errorf("-only %s: there are %s", n, strings.Join(names(), ", "))
		}
	}
	return o, nil
}

func run(stdout, stderr io.Writer, args []string) int {
	o, err := parse(stderr, args)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintln(stderr, "truth: error:", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	holds, err := prove(ctx, stdout, stderr, o)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "truth: interrupted")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(stderr, "truth: error:", err)
		return exitFailure
	case !holds:
		return exitFailure
	}
	return exitOK
}

// prove makes the checks, prints their tables and reports whether all hold. If a check fails to
// run, the others still do.
func prove(ctx context.Context, stdout, stderr io.Writer, o options) (holds bool, err error) {
	t, err := newTrial(ctx, stderr, o)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	fmt.Fprintln(stdout, t.head())
	holds = true
	var failed []error
	for _, c := range checks {
		if !slices.Contains(o.only, c.name) {
			continue
		}
		tables, err := c.make(t, ctx)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c.name, err))
			t.say("%s: error: %v", c.name, err)
			continue
		}
		for _, table := range tables {
			fmt.Fprint(stdout, "\n"+table.markdown())
			holds = holds && table.holds()
		}
	}
	return holds, errors.Join(failed...)
}
