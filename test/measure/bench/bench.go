// Package bench compares toll's own loops with the tools that engineers use instead: iperf3, qperf,
// sockperf and netperf. Each round visits all of them in an order shuffled by the seed, on the
// loopback device of a fresh network namespace, on the same CPUs and with messages of the same
// size. The printed results are ratios within a round.
//
// Throughput and latency are each program's own figures. CPU time and traffic are read from
// outside, at two instants inside the measured part.
//
// It needs CAP_SYS_ADMIN and CPUs 0 and 1.
package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

type options struct {
	rounds     int
	window     time.Duration
	seed       uint64
	congestion string
	out        string
	toll       string
}

func parse(stderr io.Writer, args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.rounds, "rounds", 15, "visits to each cell")
	f.DurationVar(&o.window, "window", time.Second,
		"measured part of a visit, in whole seconds: the peers know no others")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the order")
	f.StringVar(&o.congestion, "congestion", "reno",
		"congestion `control` of the namespace; empty: the machine's. bbr paces, which hides "+
			"the loops; reno is the one that every namespace may choose")
	f.StringVar(&o.out, "o", "", "write the result to this `file` too")
	f.StringVar(&o.toll, "toll", "./toll", "toll's `file`")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.rounds < 1:
		return o, errors.New("-rounds must be at least 1")
	case o.window < time.Second || o.window%time.Second != 0:
		return o, errors.New("-window must be whole seconds")
	}
	return o, nil
}

// Run prints a report of the comparison.
func Run(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	o, err := parse(stderr, args)
	if err != nil {
		return err
	}
	r, err := compare(ctx, stderr, o)
	if err != nil {
		return err
	}
	return write(stdout, o.out, r)
}

func write(stdout io.Writer, file string, r report) error {
	text := []byte(r.markdown())
	if _, err := stdout.Write(text); err != nil {
		return err
	}
	if file == "" {
		return nil
	}
	return os.WriteFile(file, text, 0o644)
}

// order shuffles the groups, and the cells within each group, so that compared cells are measured
// within seconds of each other.
func order(groups [][]cell, seed uint64, round int) []cell {
	rng := rand.New(rand.NewPCG(seed, uint64(round)))
	var out []cell
	for _, g := range rng.Perm(len(groups)) {
		for _, c := range rng.Perm(len(groups[g])) {
			out = append(out, groups[g][c])
		}
	}
	return out
}

// An interrupt ends the run early, and the report then has the results so far.
func compare(ctx context.Context, progress io.Writer, o options) (r report, err error) {
	env, _ := machine.Machine{}.Read() // facts that could not be read are not shown
	for _, cpu := range []int{clientCPU, serverCPU} {
		if !slices.Contains(env.CPUsAllowed, cpu) {
			return r, fmt.Errorf("CPU %d is needed and this process may not use it", cpu)
		}
	}
	b, err := newBench(o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	versions, missing := peers()
	for _, m := range missing {
		fmt.Fprintln(progress, "bench: "+m.text())
	}
	if o.congestion != "" {
		env.Congestion = o.congestion
	}
	r = report{options: o, environment: env, date: time.Now(), versions: versions, missing: missing,
		visits: map[cell]map[int]visit{}}
	groups := groupsFor(missing)
	for round := range o.rounds {
		fmt.Fprintf(progress, "bench: round %d of %d\n", round+1, o.rounds)
		for _, c := range order(groups, o.seed, round) {
			v, err := b.visitCalm(ctx, c)
			if ctx.Err() != nil {
				r.note("interrupted in round %d", round+1)
				return r, nil
			}
			if err != nil {
				r.note("round %d: %s: %v", round+1, c, err)
				continue
			}
			r.add(c, round, v)
		}
	}
	r.again, r.disturbed = b.again, b.disturbed
	return r, nil
}
