package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// planned returns a plan, or the error that a user can act on.
func planned(p sample.Plan, err error) (sample.Plan, error) {
	if err == nil {
		return p, nil
	}
	hint := "toll modes lists the modes and their placements"
	if len(p.Skipped) == 1 {
		hint = p.Skipped[0].Remedy
	}
	return p, usage(err, hint)
}

// makeAndRun plans what was requested and runs it.
func (f *runFlags) makeAndRun(c *cobra.Command, e env, r request) error {
	p, err := planned(plan.Make(r.Request))
	if err != nil {
		return err
	}
	return f.run(c, e, r, p)
}

// run builds what the plan of a request needs, measures and reports. later are the plans of the
// searches that follow a search.
func (f *runFlags) run(c *cobra.Command, e env, r request, p sample.Plan,
	later ...sample.Plan) (err error) {
	if f.quiet {
		defer sayNothing()()
	}
	f.rulesInto(&p, r.On)
	if err := cmp.Or(f.wireApplies(p, r.On), f.targetsApply(p),
		runHeadroom(p, plan.MostThreads(p.Loads))); err != nil {
		return err
	}
	var tracer engine.Tracer
	if p.Trace != nil {
		t, closeTracer, err := f.openTracer(e, *p.Trace, r.On)
		if err != nil {
			return err
		}
		tracer = t
		defer func() { err = errors.Join(err, closeTracer()) }()
	}
	ctx := c.Context()
	defer newProgress(e.stderr, f.quiet).sayStopping(ctx)()
	return f.with(ctx, r.On, r.Wire, func(builders []path.Builder) error {
		p, err := engine.Check(ctx, p, builders)
		if stop := interrupted(ctx); err != nil && stop != nil {
			return stop
		} else if err != nil {
			return err
		}
		// Modes whose build fails count as skipped, like those that a check refuses.
		measurable := func(p sample.Plan) error {
			return plan.Measurable(p, r.On, r.Modes)
		}
		if err := measurable(p); err != nil {
			return err
		}
		if err := f.fitBudget(e, c.Flags(), &p); err != nil {
			return err
		}
		if f.dryRun {
			return f.out.print(e, view.Plan(p, r.whole))
		}
		if !f.quiet {
			warnSkipped(e, p, r.Modes)
		}
		run := engine.Config{Plan: p, Builders: builders, Tracer: tracer, Built: measurable}
		if p.Study == sample.StudyAdvise {
			all := advise.NewSearches(later, p.Budget)
			if run.Next = all.Next; p.Rounds == 0 {
				run.First = all.First()
			}
		}
		return f.measure(c, e, run)
	})
}

// fitBudget returns an error if the run does not fit into a given budget. The default budget grows
// instead, with a warning. An endpoint's speed is not known: a given budget ends such a run, and
// the default one grows.
func (f *runFlags) fitBudget(e env, fl *pflag.FlagSet, p *sample.Plan) error {
	over := view.OverBudget(*p)
	if over == "" || p.Foreign() {
		return nil
	}
	least := math.Ceil(plan.LeastTime(*p))
	if !fl.Changed("budget") {
		if p.Budget = least; !f.quiet {
			warn(e, over)
		}
		return nil
	}
	or := "or fewer modes or loads"
	switch {
	case p.Mesh != nil:
		or = "or fewer nodes or loads"
	case p.Sweep != nil:
		or = "or fewer points, modes or loads"
	case len(p.Pins) > 1:
		or = "fewer modes or loads, or one placement on CPUs (--pin far)"
	}
	return usage(errors.New(over), fmt.Sprintf("--budget %.0fs, %s", least, or))
}

// warnSkipped names the modes that were asked for and of which nothing can be measured, so that the
// user need not wait for the report to read it.
func warnSkipped(e env, p sample.Plan, asked []mode.Name) {
	for _, s := range plan.Unmeasured(p, asked) {
		hint := ""
		if s.Remedy != "" {
			hint = " (hint: " + s.Remedy + ")"
		}
		warn(e, fmt.Sprintf("%s is not measured: %s%s", s.Mode, s.Reason, hint))
	}
}

// measure runs the plan, judges and prints the results. It prints what was measured after an
// interrupt or a failure, too.
func (f *runFlags) measure(cmd *cobra.Command, e env, c engine.Config) error {
	ctx := cmd.Context()
	var err error
	if c.Clock, c.Meter, err = timeOf(c.Builders); err != nil {
		return err
	}
	if err := f.out.open(e); err != nil {
		return err
	}
	if err := f.savable(); err != nil { // before anything is built
		return err
	}
	bar := newProgress(e.stderr, f.quiet)
	if err := f.watchContention(ctx, e, bar, &c); err != nil {
		return err
	}
	records, closeSave, err := f.records(e)
	if err != nil {
		return err
	}
	here := machine.Machine{}
	c.Environment, _ = here.Read() // what cannot be read is left empty
	c.Environment.Tool, c.Command = version, commandOf(c.Plan, e)
	c.Plan.Priors, c.Plan.Repeats = priorsOf(c.Plan, c.Environment)
	c.Out, c.Throttled = sample.NewWriter(records), here.Throttler()
	c.MeshConverged = judge.Converged(c.Plan)
	if over := view.OverBudget(c.Plan); over != "" && !f.quiet {
		warn(e, over)
	}
	c.Progress = bar.show
	c.Judge = func(h sample.Header) engine.Judge {
		live := judge.Live(h)
		bar.standings = live.Standings
		return live
	}
	var w *watch
	if f.live {
		if ctx, w = f.watching(ctx, e, titleOf(cmd), bar, records); w != nil {
			c.Progress = w.show
			defer w.close() // also after a panic
		}
	}
	end, runErr := engine.Run(ctx, c)
	w.close()
	bar.clear()
	runErr = errors.Join(runErr, closeSave())
	if records.kept.Len() == 0 {
		runErr = errors.Join(runErr, f.unsave())
	}
	return f.judge(ctx, e, records.kept.Bytes(), end, runErr)
}

func (f *runFlags) judge(ctx context.Context, e env, records []byte, end sample.End,
	runErr error) error {
	stop := interrupted(ctx)
	file, err := sample.Read(bytes.NewReader(records))
	switch {
	case errors.Is(err, sample.ErrEmpty) && stop != nil:
		return errors.Join(stop, runErr)
	case errors.Is(err, sample.ErrEmpty) && runErr != nil:
		return runErr
	case err != nil:
		return errors.Join(runErr, err)
	}
	if file.Truncated {
		file.End, file.Truncated = end, false
	}
	r := judge.Judge(file)
	kept := keep(e, records, file, r)
	unprinted := f.out.printReport(e, r)
	if kept > 0 && (!f.quiet || unprinted != nil) {
		say(e.stderr, fmt.Sprintf(
			"toll: kept as @%[1]d: toll view @%[1]d, toll report @%[1]d --details", kept))
	}
	switch {
	case unprinted != nil && f.out.file != "" && f.save == "" && kept == 0:
		table := outputFlags{details: f.out.details}
		table.format.name = format.All()[0].Name
		// else it would be lost
		return errors.Join(stop, runErr, unprinted, table.printReport(e, r))
	case unprinted != nil:
		return errors.Join(stop, runErr, unprinted)
	case stop != nil:
		return errors.Join(stop, runErr)
	case runErr != nil:
		return &failure{exitFailed, runErr, f.saveHint(runErr)}
	case r.Empty():
		return &failure{exitFailed, errors.New("no row has a result"),
			"the failed rows above give the reasons"}
	case !r.Complete():
		return &failure{code: exitCells}
	}
	return nil
}

func (f *writing) saveHint(err error) string {
	var pathErr *os.PathError
	if f.save != "" && errors.As(err, &pathErr) {
		return "what was measured before is printed above; free some space or give --save another path"
	}
	return ""
}

// commandOf returns the command line without output flags. It returns nil for a mesh, and for the
// user's own programs or servers if the command line may contain a password.
func commandOf(p sample.Plan, e env) []string {
	args := withoutOutput(e)
	foreign := func(l sample.Load) bool { return workload.Of(l).Foreign }
	if p.Mesh != nil || (p.Foreign() || slices.ContainsFunc(p.Loads, foreign)) && !harmless(args) {
		return nil
	}
	return args
}

// harmlessFlags lists the flags of measurements of servers whose values are no text of the user's.
var harmlessFlags = []string{"baseline", "budget", "compressed", "from", "ipv4", "ipv6", "load",
	"no-root", "queries", "recipe", "requests", "rounds", "secret-env", "seed", "sessions", "timeout",
	"tokens", "window"}

// harmlessParts lists what the paths of inference servers consist of; another part may be a key.
var harmlessParts = []string{"", "api", "chat", "completions", "openai", "v1"}

// harmless reports whether a command line has only flags of that list, and no URL with a query, a
// user, a fragment or an unknown path, nor words with spaces.
func harmless(args []string) bool {
	return !slices.ContainsFunc(args, func(arg string) bool {
		name, is := strings.CutPrefix(arg, "--")
		name, _, _ = strings.Cut(name, "=")
		return is && !slices.Contains(harmlessFlags, name) || strings.ContainsAny(arg, "?@# ") ||
			unknownPath(arg)
	})
}

// unknownPath reports whether a URL's path is neither a database nor an inference server's.
func unknownPath(arg string) bool {
	before, at, _ := strings.Cut(arg, "://")
	_, path, _ := strings.Cut(at, "/")
	parts := strings.Split(path, "/")
	if scheme := strings.ToLower(before); !strings.HasSuffix(scheme, "http") &&
		!strings.HasSuffix(scheme, "https") {
		return len(parts) > 1
	}
	return slices.ContainsFunc(parts, func(p string) bool { return !slices.Contains(harmlessParts, p) })
}

// typed heads the document's page with the command as it was typed, without output flags.
func typed(d document.Document, e env) document.Document {
	page := d.Page
	d.Page = func() (p document.Page) {
		if page != nil {
			p = page()
		}
		p.Command = printable.Line(sample.CommandLine(withoutOutput(e)))
		return p
	}
	return d
}

// withoutOutput returns the arguments without flags that only change what is printed; not nil.
func withoutOutput(e env) []string {
	out, drops := []string{}, map[string]bool{} // whether they take a value
	for _, c := range e.root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if usedAs(f, shows) {
				drops[f.Name] = f.NoOptDefVal == ""
			}
		})
	}
	for i := 0; i < len(e.args); i++ {
		name, is := strings.CutPrefix(e.args[i], "--")
		name, _, joined := strings.Cut(name, "=")
		valued, drop := drops[name]
		switch {
		case !is || !drop:
			out = append(out, e.args[i])
		case valued && !joined:
			i++
		}
	}
	return out
}
