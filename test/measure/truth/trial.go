package truth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type trial struct {
	options
	stderr      io.Writer
	dir         string
	lab         *lab.Lab
	meter       *meter.Meter
	environment sample.Environment
}

// The caller must close the trial.
func newTrial(stderr io.Writer, o options) (_ *trial, err error) {
	t := &trial{options: o, stderr: stderr, lab: &lab.Lab{Congestion: o.congestion}}
	t.environment, _ = machine.Machine{}.Read() // facts that could not be read are not shown
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if os.Geteuid() != 0 {
		return nil, errors.New("it needs root")
	}
	for _, program := range programs(o.only) {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: make truth-deps installs it", err)
		}
	}
	if t.meter, err = meter.New(); err != nil {
		return nil, err
	}
	t.dir, err = os.MkdirTemp("", "truth")
	return t, err
}
func (t *trial) close() error {
	err := t.lab.Close()
	if t.dir == "" {
		return err
	}
	return errors.Join(err, os.RemoveAll(t.dir))
}

func (t *trial) say(format string, args ...any) {
	fmt.Fprintf(t.stderr, "truth: "+format+"\n", args...)
}

func (t *trial) head() string {
	e := t.environment
	return fmt.Sprintf("%s; %s, %d CPUs; Linux %s; load average before %.2f; scale %s, seed %d.",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), e.CPUModel, e.CPUs, e.Kernel,
		e.LoadAverage, t.scale.name, t.seed)
}

const exitTimeout = 10 * time.Second

// command is a run of toll, without its history.
type command struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
}

func (t *trial) command(ctx context.Context, args ...string) *command {
	c := &command{Cmd: exec.CommandContext(ctx, t.toll, args...)}
	c.Env = append(os.Environ(), "TOLL_HISTORY=off")
	c.WaitDelay = exitTimeout
	c.Stdout, c.Stderr = &c.stdout, &c.stderr
	return c
}

// failed returns the run's error with its command line and what it printed, or nil if err is nil.
func (c *command) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("toll %s: %w: %s", strings.Join(c.Args[1:], " "), err,
		strings.TrimSpace(c.stderr.String()))
}

// in runs toll in a namespace.
func (c *command) in(ns *netns.NS) error {
	err := ns.Start(c.Cmd)
	if err == nil {
		err = c.Wait()
	}
	return c.failed(err)
}

func (t *trial) run(ctx context.Context, args ...string) ([]byte, error) {
	c := t.command(ctx, args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // it has to clean up
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}               // a terminal's Ctrl-C reaches it once
	err := c.failed(c.Run())
	return c.stdout.Bytes(), err
}

// reported returns the error of a toll that ended, or nil if only cells failed: its report says
// why.
func reported(err error) error {
	const exitCells = 4
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitCells {
		return nil
	}
	return err
}

// compare judges the results file of toll compare again. The report includes cells without a
// result.
func (t *trial) compare(ctx context.Context, args ...string) (*analysis.Report, error) {
	file := filepath.Join(t.dir, "run.jsonl")
	_, err := t.run(ctx, append([]string{"compare", "--quiet", "--force", "--save", file},
		args...)...)
	if err := reported(err); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return compared(b)
}

func compared(records []byte) (*analysis.Report, error) {
	f, err := sample.Read(bytes.NewReader(records))
	if err != nil {
		return nil, err
	}
	return analysis.Judge(f), nil
}

func (t *trial) plan(ctx context.Context, args ...string) (p sample.Plan, err error) {
	out, err := t.run(ctx, append([]string{"compare", "--dry-run", "--format", "json",
		"--congestion", t.congestion}, args...)...)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return p, fmt.Errorf("read the plan: %w", err)
	}
	return p, nil
}

// measure runs p in this process on b's paths. each is its budget.
func (t *trial) measure(ctx context.Context, p sample.Plan, each time.Duration,
	b path.Builder) (*analysis.Report, error) {
	records, err := t.records(ctx, p, each, b, nil)
	if err != nil {
		return nil, err
	}
	return compared(records)
}

// records returns the results file of such a run. Without a tracer nothing is traced.
func (t *trial) records(ctx context.Context, p sample.Plan, each time.Duration, b path.Builder,
	tracer engine.Tracer) ([]byte, error) {
	p.Rounds, p.Budget = 0, each.Seconds()
	var records bytes.Buffer
	_, err := engine.Run(ctx, engine.Config{
		Plan: p, Environment: t.environment, Builders: []path.Builder{b},
		Meter: t.meter, Clock: engine.Monotonic{}, Out: sample.NewWriter(&records),
		Throttled: machine.Machine{}.Throttler(), Tracer: tracer})
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return records.Bytes(), nil
}

func cell(r *analysis.Report, mode, tune, load string) (analysis.Cell, error) {
	for _, c := range r.Cells {
		if string(c.Mode) == mode && string(c.Tune) == tune && c.Load == load {
			return c, nil
		}
	}
	for _, f := range r.Failed {
		if string(f.Mode) == mode && string(f.Tune) == tune && f.Load == load {
			return analysis.Cell{}, fmt.Errorf("%s, %s: %s", mode, load, f.Reason)
		}
	}
	return analysis.Cell{}, fmt.Errorf("%s, %s: not measured", mode, load)
}

func ratioOf(r *analysis.Report, mode, tune, load string) (estimate, *analysis.Ratio, error) {
	c, err := cell(r, mode, tune, load)
	if err != nil {
		return estimate{}, nil, err
	}
	ratio := c.Metrics[c.Primary].Ratio
	e, err := ofRatio(ratio)
	if err != nil {
		return e, nil, fmt.Errorf("%s, %s: %w", mode, load, err)
	}
	return e, ratio, nil
}
