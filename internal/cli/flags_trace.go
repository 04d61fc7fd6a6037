package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// traceable returns an error if the request cannot be traced.
func traceable(r request, fl *pflag.FlagSet, command string, loads ...string) error {
	if err := only(r.Request, command, loads...); err != nil {
		return err
	}
	for _, on := range r.On {
		if sample.Distant(on) {
			return usage(fmt.Errorf("--on %s cannot be traced: one end is on another machine, "+
				"with a kernel of its own", on),
				"--on lab or --on docker, or toll ladder --on "+on)
		}
	}
	if fl.Changed(precisionFlag) {
		return usage(errors.New("--precision cannot end a traced run, only --budget or --rounds can"),
			"leave --precision out")
	}
	for _, l := range r.Loads {
		if l.Slice == 0 {
			return usage(fmt.Errorf("%s can be traced only in slices: %s", l.Kind,
				cmp.Or(r.whole[l.Name()], "--slice 0")), "leave that flag out")
		}
		if l.Streams > 1 {
			return usage(fmt.Errorf("--connections %d: a trace follows one connection", l.Streams),
				"leave --connections out")
		}
	}
	return nil
}

// checkHooks returns nil if the kernel can trace hooks. Tests without a kernel replace it.
var checkHooks = trace.CheckHooks

// translates reports whether a planned path crosses NAT.
func translates(p sample.Plan) bool {
	return slices.ContainsFunc(p.Cells, func(c sample.Cell) bool {
		m, _ := mode.Find(c.Mode)
		r, ok := m.Route(c.From, c.To)
		return ok && (slices.Contains(r.Hops, mode.HopDNAT) || slices.Contains(r.Hops, mode.HopSNAT))
	})
}

// openTracer returns a tracer. It attaches the programs once, because only that shows what the
// kernel and the user's capabilities allow. Tests without a kernel replace it.
var openTracer = func(hooks bool) (engine.Tracer, func() error, error) {
	t, err := trace.Open()
	if err != nil {
		return nil, nil, err
	}
	if hooks {
		if err := checkHooks(); err != nil {
			return nil, nil, errors.Join(err, t.Close())
		}
	}
	r, err := t.Attach(trace.Config{CPUs: []int{0}, Events: 1})
	if err == nil {
		err = r.Stop()
	}
	if err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	return engine.Kernel{Tracer: t}, t.Close, nil
}

// openTracer returns a tracer. Before a dry run, which traces nothing, it only warns. It is called
// after the command line is checked.
func (f *runFlags) openTracer(e env, p sample.TracePlan, on []string) (engine.Tracer, func() error, error) {
	if err := f.fit(on); err != nil {
		return nil, nil, err
	}
	t, closeTracer, err := openTracer(p.Hooks)
	if err == nil {
		return t, closeTracer, nil
	}
	err = fmt.Errorf("cannot trace here: %w", err)
	if !f.dryRun {
		return nil, nil, err
	}
	if !f.quiet {
		warn(e, err.Error())
	}
	return nil, func() error { return nil }, nil
}
