package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/judge"
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

// A study is what a command makes of the common flags.
type study struct {
	request func(*plan.Request) error               // changes their request; may be nil
	plan    func(plan.Request) (sample.Plan, error) // nil: plan.Make
	steps   func(*engine.Config)                    // changes the run's steps; may be nil
}

// command returns the function that runs a command which only changes the request.
func (f *runFlags) command(e env,
	change func(*plan.Request) error) func(*cobra.Command, []string) error {
	return f.study(e, study{request: change})
}

func (f *runFlags) study(e env, s study) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if f.loads.given = c.Flags().Changed; !f.loads.given("seed") {
			f.seed = uint64(rand.Uint32())
		}
		if f.quiet {
			defer sayNothing()()
		}
		usual, err := f.setDefaults(c.Flags(), args)
		if err := errors.Join(err, f.checkLive(c)); err != nil {
			return err
		}
		if err := f.out.check(place{saveFlag, f.save}); err != nil {
			return err
		}
		if len(args) == 0 {
			args = usual
		}
		req, err := f.toRequest(args)
		if err == nil && s.request != nil {
			err = s.request(&req)
		}
		if err != nil {
			return err
		}
		if x := c.Flags().Lookup("congestion"); x != nil && !x.Changed {
			unpace(&req)
		}
		remedy(&req)
		return f.run(c.Context(), e, req, s)
	}
}

// fromInside places the client in a container if only outward targets are requested and no
// placement is given. If all modes are native, which has no container, it places the client on the
// machine.
func (f *targets) fromInside(fl *pflag.FlagSet, modes []string) {
	inward := func(to string) bool { return !mode.Target(to).Outside() }
	contained := func(m string) bool { return m != string(mode.Native) }
	switch {
	case len(f.to) == 0 || fl.Changed("from") || slices.ContainsFunc(f.to, inward):
	case len(modes) > 0 && !slices.ContainsFunc(modes, contained):
		f.from = []string{string(mode.FromHost)}
	default:
		f.from = []string{string(mode.FromContainer)}
	}
}

func (f *runFlags) run(ctx context.Context, e env, req plan.Request, s study) (err error) {
	planned := s.plan
	if planned == nil {
		planned = plan.Make
	}
	p, err := planned(req)
	if err != nil {
		hint := "toll modes lists the modes and their placements"
		if len(p.Skipped) == 1 {
			hint = p.Skipped[0].Remedy
		}
		return usage(err, hint)
	}
	f.rulesInto(&p, req.On)
	if err := f.wireApplies(p); err != nil {
		return err
	}
	if err := f.targetsApply(p); err != nil {
		return err
	}
	if err := runHeadroom(p, f.loads.mostThreads()); err != nil {
		return err
	}
	var tracer engine.Tracer
	if p.Trace = f.trace; f.trace != nil {
		if f.hooksForNAT {
			p.Trace.Hooks = translates(p) && checkHooks() == nil
		}
		t, closeTracer, err := f.openTracer(e, req.On)
		if err != nil {
			return err
		}
		tracer = t
		defer func() { err = errors.Join(err, closeTracer()) }()
	}
	defer newProgress(e.stderr, f.quiet).sayStopping(ctx)()
	return f.with(ctx, req.On, req.Wire, func(builders []path.Builder) error {
		p, err := engine.Check(ctx, p, builders)
		if stop := interrupted(ctx); err != nil && stop != nil {
			return stop
		} else if err != nil {
			return err
		}
		// Modes whose build fails count as skipped, like those that a check refuses.
		measurable := func(p sample.Plan) error {
			return cmp.Or(checkBaseline(p), checkBackends(p, req.On), checkAsked(p, req.Modes))
		}
		if err := measurable(p); err != nil {
			return err
		}
		if err := f.fitBudget(e, &p); err != nil {
			return err
		}
		if f.dryRun {
			return f.out.print(e, view.Plan(p, f.slicing.whole))
		}
		if !f.quiet {
			warnSkipped(e, p, req.Modes)
		}
		c := engine.Config{Plan: p, Builders: builders, Tracer: tracer, Built: measurable}
		if s.steps != nil {
			s.steps(&c)
		}
		return f.measure(ctx, e, c)
	})
}

// fitBudget returns an error if the run does not fit into a given budget. The default budget grows
// instead, with a warning. An endpoint's speed is not known: a given budget ends such a run, and the
// default one grows.
func (f *runFlags) fitBudget(e env, p *sample.Plan) error {
	over := view.OverBudget(*p)
	if over == "" || p.Foreign() {
		return nil
	}
	least := math.Ceil(plan.LeastTime(*p))
	if !f.loads.given("budget") {
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

// checkBaseline returns an error if the baseline, or every cell, was skipped.
func checkBaseline(p sample.Plan) error {
	if len(p.Cells) == 0 {
		return nothing(p)
	}
	for _, s := range p.Skipped {
		built := slices.ContainsFunc(p.Cells, func(c sample.Cell) bool { return c.Mode == s.Mode })
		if string(s.Mode) == p.Baseline && s.On != "" && !built {
			return &failure{exitNothing, fmt.Errorf(
				"the baseline %s cannot be measured here: %s", s.Mode, s.Reason), s.Remedy}
		}
	}
	return nil
}

// checkBackends returns an error if all cells of a backend were skipped.
func checkBackends(p sample.Plan, on []string) error {
	for _, name := range on {
		if slices.ContainsFunc(p.Cells, func(c sample.Cell) bool { return c.On == name }) {
			continue
		}
		for _, s := range p.Skipped {
			if s.On == name {
				return &failure{exitNothing, fmt.Errorf(
					"nothing can be measured here with --on %s: %s: %s", name, s.Mode, s.Reason),
					s.Remedy}
			}
		}
	}
	return nil
}

// checkAsked returns an error if none of the named modes is left. Later steps of a search may build
// more of them.
func checkAsked(p sample.Plan, asked []mode.Name) error {
	if len(p.Skipped) == 0 || len(p.Levers) > 0 || slices.ContainsFunc(p.Cells,
		func(c sample.Cell) bool {
			return string(c.Mode) != p.Baseline || slices.Contains(asked, c.Mode) ||
				c.Tune != "" && string(c.Tune) != p.Unpaced
		}) {
		return nil
	}
	return nothing(p)
}

func nothing(p sample.Plan) error {
	s := p.Skipped[len(p.Skipped)-1]
	return &failure{exitNothing, fmt.Errorf(
		"nothing can be measured here: %s: %s", s.Mode, s.Reason), s.Remedy}
}

// warnSkipped names the modes that were asked for and of which nothing can be measured, so that the
// user need not wait for the report to read it.
func warnSkipped(e env, p sample.Plan, asked []mode.Name) {
	for _, m := range asked {
		i := slices.IndexFunc(p.Skipped, func(s sample.Skip) bool { return s.Mode == m })
		if i >= 0 && !slices.ContainsFunc(p.Cells, func(c sample.Cell) bool { return c.Mode == m }) {
			warn(e, fmt.Sprintf("%s is not measured: %s", m, p.Skipped[i].Reason))
		}
	}
}

// measure runs the plan, judges and prints the results. It prints what was measured after an
// interrupt or a failure, too.
func (f *runFlags) measure(ctx context.Context, e env, c engine.Config) error {
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
	if !f.noHistory {
		c.Plan.Priors, c.Plan.Repeats = priorsOf(c.Plan, c.Environment)
	}
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
		if ctx, w = f.watching(ctx, e, bar, records); w != nil {
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
	kept := 0
	if !f.noHistory {
		kept = keep(e, records, file, r)
	}
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
// user's own programs or servers, whose command lines may contain passwords.
func commandOf(p sample.Plan, e env) []string {
	foreign := func(l sample.Load) bool { return workload.Of(l).Foreign }
	if p.Foreign() || p.Mesh != nil || slices.ContainsFunc(p.Loads, foreign) {
		return nil
	}
	return withoutOutput(e)
}

// typed heads the document's page with the command as it was typed, without output flags.
func typed(d document.Document, e env) document.Document {
	if page := d.Page; page != nil {
		d.Page = func() document.Page {
			p := page()
			p.Command = printable.Line(sample.CommandLine(withoutOutput(e)))
			return p
		}
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
