// Package truth shows that toll's results are true: it finds identical modes the same, it finds and
// sizes planted differences, and its results do not depend on the length of slices, their order,
// the other cells of the run, or the tool that measures. Of toll trace it shows that parts are
// where they are said to be, also in routes to real servers, and of toll stream that it finds what
// delays tokens.
//
// Each check prints a table in Markdown. A row whose interval is too wide to tell does not hold.
//
// It needs root, two CPUs, and the programs nft, tc, iperf3 and qperf.
package truth

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

type options struct {
	only       []string
	scale      scale
	seed       uint64
	congestion string
	toll       string
	picture    string
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
	f.StringVar(&only, "only", "", "make these `checks` only, with commas between: "+strings.Join(
		names(), ","))
	f.BoolVar(
		&quick, "quick", false,
		"few and short runs, to try the checks out: most rows will be too wide to tell")
	f.BoolVar(
		&full, "full", false,
		"as many and as long runs as the numbers of docs/method.md rest on: more than two hours")
	f.IntVar(
		&runs, "runs", 0,
		"so many runs of aa, minute, trace and each planted difference (default as the "+
			"scale has it)")
	f.Uint64Var(&o.seed, "seed", 1, "seed of all orders")
	f.StringVar(&o.congestion, "congestion", "reno",
		"congestion `control` of the lab where toll and others are compared, and of aa; "+
			"precision takes toll as it is")
	f.StringVar(&o.picture, "picture", "", "write minute's intervals as SVG to this `file`")
	f.StringVar(&o.toll, "toll", "./toll", "toll's `file`")
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

// Run makes the checks that args choose. It returns an error if a row does not hold.
func Run(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	o, err := parse(stderr, args)
	if err != nil {
		return err
	}
	holds, err := prove(ctx, stdout, stderr, o)
	if err == nil && !holds {
		err = errors.New("some rows do not hold")
	}
	return err
}

// If a check fails to run, the others still do.
func prove(ctx context.Context, stdout, stderr io.Writer, o options) (holds bool, err error) {
	t, err := newTrial(stderr, o)
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
