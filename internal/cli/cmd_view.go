package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/live"
	"github.com/bridgetoll/bridgetoll/internal/show/live/terminal"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

func newView(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "view FILE",
		Short: "Look at a results file on the terminal: sort, pick rows, see details",
		Long: `view shows a results file on the whole terminal: the answer, the tables, and for each
row its rounds, percentiles, hops with their counters, and CPU time. ? lists the keys.

FILE is what --save writes, @1 the newest run of the history, "-" standard input. A file
that is still being written is followed until its run ends.`,
		Example: `  toll view run.jsonl
  toll view @1
  ssh server tail -n +1 -f run.jsonl | toll view -`,
		Args: oneArgument("results file", "toll view run.jsonl"),
		RunE: func(c *cobra.Command, args []string) error {
			return viewFile(c.Context(), e, args[0], c.InOrStdin())
		},
	}
}

func viewFile(ctx context.Context, e env, name string, stdin io.Reader) error {
	instead := sample.CommandLine([]string{"report", name}) + " prints it"
	out, is := fileOf(e.stdout)
	if !is || !isTerminal(out) || os.Getenv("TERM") == "dumb" {
		return &failure{exitFailed, errors.New(
			"toll view needs a terminal as standard output"), instead}
	}
	in := &growing{name: name, file: sample.NewGrowing(), Reader: stdin}
	var first live.State
	err := soon(ctx, func() (err error) {
		first, err = in.begin(ctx, e)
		return err
	})
	if err != nil {
		return err
	}
	keys, title := stdinOf(stdin), name
	if name == "-" { // keys come from the process's terminal
		keys, title = nil, "standard input"
	}
	t, err := terminal.Open(keys, out)
	if err != nil {
		return &failure{exitFailed, fmt.Errorf("view: %w", err), instead}
	}
	d := terminal.Show(t, func(columns, lines int) live.Model {
		return live.New("toll view · "+printable.Line(title), false, colored(out), columns,
			lines).With(first)
	})
	follows, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		if err := in.follow(follows, d); err != nil {
			failed <- err
		}
	}()
	select {
	case <-d.Ended():
	case <-ctx.Done():
	case err = <-failed:
	}
	return errors.Join(interrupted(ctx), err, d.Close())
}

func stdinOf(in io.Reader) *os.File {
	f, _ := in.(*os.File)
	return f
}

// soon returns when f returns or a signal arrives. f must not need to clean up.
func soon(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.Join(interrupted(ctx), context.Cause(ctx))
	}
}

type growing struct {
	io.Reader
	name    string
	regular bool // the file has an end, and may grow
	file    *sample.Growing
	took    int64 // bytes read

	ended bool          // whether the run had ended when it was last judged
	cost  time.Duration // time of the last judging
}

// begin returns the first state. It reads nothing from a pipe or device, which may have no end.
func (g *growing) begin(ctx context.Context, e env) (s live.State, err error) {
	if g.name == "-" {
		return g.state(), nil
	}
	f, size, err := openResults(e, g.name)
	if err != nil {
		return s, err
	}
	g.Reader, g.regular = f, size >= 0 // stays open until toll exits
	if !g.regular {
		return g.state(), nil
	}
	bar := newProgress(e.stderr, false)
	defer bar.clear()
	if err := g.read(ctx, bar.reading(f, size)); err != nil {
		return s, err
	}
	if err := g.check(); err != nil {
		return s, err
	}
	if f, err := g.file.File(); err == nil {
		bar.judging(len(f.Visits))
	}
	return g.state(), nil
}

func (g *growing) read(ctx context.Context, r io.Reader) error {
	b := make([]byte, 64<<10)
	for ctx.Err() == nil {
		n, err := r.Read(b)
		g.took += int64(n)
		if _, bad := g.file.Write(b[:n]); bad != nil {
			return g.bad(bad)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return g.bad(err)
		}
	}
	return context.Cause(ctx)
}

func (g *growing) bad(err error) error {
	return &failure{exitBadFile, fmt.Errorf("%s: %w", g.name, err),
		"a results file is what toll compare --save writes"}
}

// check returns an error if the file is not a results file. It accepts an empty regular file, which
// may become one.
func (g *growing) check() error {
	if _, err := g.file.File(); err != nil && (g.took > 0 || !g.regular) {
		return g.bad(err)
	}
	return nil
}

// How often a file is checked for new data, and the shortest wait until it is judged again, as a
// multiple of the time that judging took.
const (
	lookEvery  = time.Second
	judgeShare = 10
)

func (g *growing) follow(ctx context.Context, d *terminal.Display) error {
	if !g.regular {
		return g.followStream(ctx, d)
	}
	for !g.ended {
		for had := g.took; g.took == had; {
			if !pause(ctx, max(lookEvery, judgeShare*g.cost)) {
				return nil
			}
			if err := g.read(ctx, g.Reader); err != nil {
				return err
			}
		}
		d.Send(g.state())
	}
	return nil
}

// followStream reads a pipe to its end. It judges when the pipe is silent for a moment.
func (g *growing) followStream(ctx context.Context, d *terminal.Display) error {
	type chunk struct {
		b   []byte
		err error
	}
	chunks := make(chan chunk)
	go func() {
		for {
			b := make([]byte, 64<<10)
			n, err := g.Read(b)
			select {
			case chunks <- chunk{b[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	const lull = 200 * time.Millisecond
	var due <-chan time.Time
	wait := lull
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-due:
			d.Send(g.state())
			due, wait = nil, max(lull, judgeShare*g.cost)
		case c := <-chunks:
			g.took += int64(len(c.b))
			if _, err := g.file.Write(c.b); err != nil {
				return g.bad(err)
			}
			if c.err != nil {
				if !errors.Is(c.err, io.EOF) {
					return g.bad(c.err)
				}
				if err := g.check(); err != nil {
					return err
				}
				s := g.state()
				if f, err := g.file.File(); err == nil && !g.ended { // the run was cut short
					s = live.State{Report: judge.Judge(f), Note: "cut short"}
				}
				d.Send(s)
				return nil
			}
			if due == nil {
				due = time.After(wait)
			}
		}
	}
}

func (g *growing) state() (s live.State) {
	f, err := g.file.File()
	if err != nil {
		return live.State{Note: "waiting for the run's first record"}
	}
	began := time.Now()
	s.Report = judge.SoFar(f)
	if f.Truncated {
		s.Note = "not ended: following it"
	}
	g.ended, g.cost = !f.Truncated, time.Since(began)
	return s
}

// pause waits for t. It returns false as soon as ctx ends.
func pause(ctx context.Context, t time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(t):
		return true
	}
}
