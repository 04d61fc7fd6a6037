package client

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Command is a client's command line, as in toll run.
type Command struct {
	Line    string // for /bin/sh; {host}, {port} and {addr} are replaced by what it connects to
	Recipe  string // "": the user's own
	Gauges  []sample.Gauge
	Seconds int           // the value of {seconds}
	Timeout time.Duration // limit of a run
	NoRoot  bool          // as an ordinary user
}

// OfRecipe returns the client of a recipe; the error is a *secondPortError if it uses two ports.
// The error for a program that is not installed names the package.
func OfRecipe(name string) (c Command, err error) {
	r, err := program.FindRecipe(name)
	if err != nil {
		return c, err
	}
	if program.NeedsSecond(r.Client) {
		return c, &secondPortError{r.Name}
	}
	if err := r.CheckClient(); err != nil {
		return c, fmt.Errorf("recipe %s: %w", r.Name, err)
	}
	p, err := r.Program()
	return Command{Line: p.Client, Recipe: p.Recipe, Gauges: p.Gauges}, err
}

// secondPortError reports a recipe whose client connects to two ports.
type secondPortError struct{ recipe string }

func (e *secondPortError) Error() string {
	return fmt.Sprintf("recipe %s: its client connects to a second port of its server, which no published one is", e.recipe)
}

// Hint returns what to do instead.
func (e *secondPortError) Hint() string {
	return "--client 'COMMAND', with a client of the port's server"
}

// took is the metric of a command without gauges.
const took = "time"

// Run runs a command line once in each visit, in this network namespace and in PID and mount
// namespaces of its own: what it leaves running ends with the visit.
func Run(c Command, to netip.AddrPort) *Client {
	out := &Client{Name: "run", Note: "run: " + took + " is how long the command takes"}
	if c.Recipe != "" {
		out.Name = "run " + c.Recipe
	}
	var names []string
	for _, g := range c.Gauges {
		out.Metrics = append(out.Metrics, Metric{g.Name, g.Unit, !g.Lower})
		names = append(names, g.Name)
	}
	if len(names) == 0 {
		out.Metrics = []Metric{{took, "s", false}}
	} else {
		out.Note = out.Name + ": " + strings.Join(names, ", ") + ": what the command prints"
	}
	r := &runner{command: c, to: to}
	out.visit, out.end = r.visit, r.close
	return out
}

// runner runs a command repeatedly.
type runner struct {
	command Command
	to      netip.AddrPort

	control *program.Control // nil: no keeper runs
	process *path.Process
	here    *netns.NS
}

func (r *runner) start() error {
	if r.control != nil {
		return nil
	}
	here, err := netns.Here()
	if err != nil {
		return err
	}
	p, err := local.StartSelf(here, "this machine", path.Command{Args: []string{program.Arg}, Apart: true})
	if err != nil {
		return errors.Join(err, here.Close())
	}
	r.here, r.process, r.control = here, p, program.NewControl(p.In, p.Out)
	return nil
}

// visit runs the command to its end, however long that takes.
func (r *runner) visit(ctx context.Context, _ time.Duration) (map[string]float64, error) {
	if err := r.start(); err != nil {
		return nil, err
	}
	line := program.Fill{Addr: r.to, Seconds: r.command.Seconds}.Into(r.command.Line)
	limit := r.command.Timeout
	_, err := r.control.Do(ctx, program.Request{Op: program.Start, Command: line, NoRoot: r.command.NoRoot, Limit: limit})
	if err != nil {
		return nil, err
	}
	st, err := r.control.Do(ctx, program.Request{Op: program.Wait, Limit: limit})
	if err != nil {
		return nil, err
	}
	if st.Exit != "" {
		st.Error = "the command failed"
		return nil, &program.Error{State: st}
	}
	if _, err := r.control.Do(ctx, program.Request{Op: program.Stop}); err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, g := range r.command.Gauges {
		if out[g.Name], err = program.Extract(g, st.Stdout+"\n"+st.Stderr); err != nil {
			st.Error = err.Error()
			return nil, &program.Error{State: st}
		}
	}
	if len(out) == 0 {
		out[took] = st.Elapsed.Seconds()
	}
	return out, nil
}

// close kills what runs.
func (r *runner) close() error {
	if r.control == nil {
		return nil
	}
	err := r.process.Kill()
	_ = r.control.Close() // a pipe whose reader is gone
	_ = r.process.Wait()  // it was killed
	r.control = nil
	return errors.Join(err, r.here.Close())
}
