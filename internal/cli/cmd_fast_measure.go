package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/reach/fast"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// The words of --measure that send what the command of the same name does.
const (
	asStream = "stream"
	asSQL    = "sql"
	asRun    = "run"
)

func measureWords() []string {
	return append(endpoint.Probes(), asStream, asStream+":/PATH", asSQL, asRun)
}

func ofCommand(word string) string {
	if slices.Contains([]string{asStream, asSQL, asRun}, word) {
		return word
	}
	if strings.HasPrefix(word, asStream+":/") {
		return asStream
	}
	return ""
}

// checkMeasure returns an error for an unknown word. The error does not show what follows a
// command's name, which may contain a password.
func checkMeasure(word string) error {
	if ofCommand(word) != "" {
		return nil
	}
	kind, _, _ := strings.Cut(word, ":")
	hint := map[string]string{asStream: "--measure=stream --model NAME, or stream:/PATH",
		asSQL: "--measure=sql --dsn URL", asRun: "--measure=run --client COMMAND"}[kind]
	if hint != "" {
		return usage(fmt.Errorf("--measure=%s:…: no such load", kind), hint)
	}
	if err := endpoint.CheckProbe(word); err != nil {
		return usage(fmt.Errorf("--measure: %w", err),
			"it is one of "+strings.Join(measureWords(), ", "))
	}
	return nil
}

type measureFlags struct {
	word    string // "": nothing is measured
	run     runFlags
	chat    chatFlags
	sql     sqlFlags
	dsn     string
	program programFlags
	timeout time.Duration
}

// measureOnly lists, by word of --measure, the flags that need it. Those of "" need any word.
var measureOnly = map[string][]string{
	"": {"budget", "precision", "rounds", "seed", saveFlag, "dry-run", "no-history", "quiet",
		"live",
		"details", "timeout"},
	asStream: {"model", "prompt", "tokens", "api-key-env"},
	asSQL:    {"dsn", "query", "queries", "password-env"},
	asRun:    {"client", "recipe", "metric", "seconds", "no-root"},
}

func (f *measureFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(
		&f.word, "measure", "", "measure the ports with and without it, and keep it only if "+
			"it helped; what is sent: "+strings.Join(measureWords(), ", "))
	fl.Lookup("measure").NoOptDefVal = "auto"
	fl.StringVar(&f.dsn, "dsn", "",
		"URL of the database, without a password; it may leave host and port out")
	fl.Var(timeFlag(&f.timeout, 30*time.Second, minWait, maxTimeout), "timeout",
		"longest wait of stream, sql and run: for a token, for a page, for the client to end")
	f.run.addRounds(fl)
	f.run.addLive(fl)
	f.run.out.addDetails(fl)
	for word, add := range map[string]func(*pflag.FlagSet){"": nil,
		asStream: f.chat.add, asSQL: f.sql.add, asRun: f.program.add} {
		theirs := pflag.NewFlagSet("", pflag.ContinueOnError)
		if add != nil {
			add(theirs)
		}
		for _, name := range measureOnly[word] {
			if fl.Lookup(name) == nil {
				fl.AddFlag(theirs.Lookup(name))
			}
			x := fl.Lookup(name)
			x.Usage = strings.TrimSuffix("with --measure="+word, "=") + ": " + x.Usage
		}
	}
}

func (f *measureFlags) check(c *cobra.Command, want fast.Choice) error {
	command := ofCommand(f.word)
	for _, w := range []string{"", asStream, asSQL, asRun} {
		for _, name := range measureOnly[w] {
			switch {
			case !c.Flags().Changed(name):
			case w == "" && f.word == "":
				return usage(fmt.Errorf("--%s needs --measure", name),
					"toll fast on 8080 --measure")
			case w != "" && w != command:
				return usage(fmt.Errorf("--%s needs --measure=%s", name, w),
					"toll fast on 8080 --measure="+w)
			}
		}
	}
	switch {
	case f.word == "":
		return nil
	case command == "" && c.Flags().Changed("timeout"):
		return usage(errors.New("--timeout needs --measure=stream, sql or run"), "")
	case want.All:
		return usage(errors.New("--measure needs port numbers, not --all"),
			"toll fast on 8080 --measure")
	case len(want.Ports) > 1 && (f.dsn != "" || f.run.save != "" || f.run.out.file != ""):
		return usage(errors.New("--dsn, --save and --output work with one port only"),
			"toll fast on 8080 --measure")
	case len(want.Ports) > 1 && !slices.Contains([]string{"table", "markdown"}, f.run.out.format.name):
		return usage(fmt.Errorf("--format %s cannot hold the reports of several ports",
			f.run.out.format.name), "measure one port at a time, or --format markdown")
	}
	return errors.Join(checkMeasure(f.word), f.run.checkLive(c),
		f.run.out.check(place{saveFlag, f.run.save}))
}

// endpointsOf returns the names of a port's two endpoints. The one without fast is the baseline.
func endpointsOf(port uint16) (without, with string) {
	return fmt.Sprintf("port-%d", port), fmt.Sprintf("fast-%d", port)
}

// fastWindow is the length of a visit's window unless the client decides it.
const fastWindow = 0.1 // seconds

// switched is a route that has fast on during its visits. Check prepares fast, and Close turns it
// off.
type switched struct {
	endpoint.Asker
	with  string
	want  fast.Choice
	port  uint16
	stop  context.CancelCauseFunc
	trial *fast.Trial // nil before Check
}

func (s *switched) Check(ctx context.Context) (err error) {
	if err := s.Asker.Check(ctx); err != nil {
		return err
	}
	s.trial, err = fast.NewTrial(ctx, s.want)
	return err
}

// Paths adds the parts of fast to the facts of the route that has them: the routes have the same
// address.
func (s *switched) Paths() []sample.Path {
	all := s.Asker.Paths()
	for _, p := range all {
		if p.Route == s.with {
			p.Facts["fast"] = joinParts(s.want.Parts, ",")
		}
	}
	return all
}

func (s *switched) Visit(ctx context.Context, c sample.Cell, l sample.Load, v *sample.Visit) error {
	err := s.trial.During(ctx, s.port, c.Route == s.with, func(ctx context.Context) error {
		return s.Asker.Visit(ctx, c, l, v)
	})
	if errors.Is(err, fast.ErrOff) {
		s.stop(err)
	}
	return err
}

func (s *switched) Close() (err error) {
	if s.trial != nil {
		err = s.trial.Close()
	}
	return errors.Join(err, s.Asker.Close())
}

type measurement struct {
	*measureFlags
	cmd      *cobra.Command
	env      env
	want     fast.Choice
	requests *requests // nil: the flags' word says what is sent
	verdicts tried
}

func (m *measurement) measure(lease time.Duration) error {
	if m.run.quiet {
		defer sayNothing()()
	}
	for _, port := range m.want.Ports {
		if err := m.port(port); err != nil {
			if x := (*failure)(nil); errors.As(err, &x) && x.err == nil { // the report says why
				say(m.env.stderr, "Fast is off, as before.")
			}
			return err
		}
	}
	if m.run.dryRun {
		return nil
	}
	kept, why := m.verdicts.helped()
	if !kept {
		say(m.env.stderr, "Fast was turned off again: "+why+".")
		return &failure{code: exitCells}
	}
	if err := enable(m.cmd.Context(), m.want, lease); err != nil {
		return err
	}
	say(
		m.env.stderr,
		fmt.Sprintf("Fast is kept: %s. It ends in %.0f s unless toll fast watch renews it.",
			why, lease.Seconds()))
	return nil
}

func (m *measurement) port(port uint16) error {
	if fast.IsOn() {
		return fast.ErrOn
	}
	ctx, stop := context.WithCancelCause(m.cmd.Context())
	defer stop(nil)
	dial, inside, err := fast.Published(ctx, port)
	if err != nil {
		return err
	}
	s := &switched{want: m.want, port: port, stop: stop}
	m.run.baseline, s.with = endpointsOf(port)
	var l sample.Load
	if s.Asker, l, err = m.asker(ctx, dial, inside); err != nil {
		return fmt.Errorf("ask port %d: %w", port, err)
	}
	if !m.run.quiet && !m.run.dryRun {
		say(m.env.stderr, fmt.Sprintf("toll: measuring %s with fast and without, in turns; "+
			"local clients of the port use both", dial))
	}
	m.run.judged = m.verdicts.add
	defer sayNothing()() // the engine is asked again and again
	defer m.cmd.SetContext(m.cmd.Context())
	m.cmd.SetContext(ctx)
	err = m.run.endpoints(m.cmd, m.env, s, []sample.Load{l}, places{})
	if off := context.Cause(ctx); errors.Is(off, fast.ErrOff) {
		return off
	}
	return err
}

func (m *measurement) asker(ctx context.Context, dial netip.AddrPort, inside uint16) (
	a endpoint.Asker, l sample.Load, err error) {
	if r := m.requests; r != nil {
		a, err = r.asker(dial)
		return a, r.load, err
	}
	without, with := endpointsOf(dial.Port())
	if m.run.dryRun {
		p, err := endpoint.UnaskedProbe(m.word, dial.String(), without, with)
		return p, p.Load(), err
	}
	p, err := endpoint.NewProbe(ctx, m.word, dial.String(), inside, without, with)
	if err != nil {
		return nil, l, err
	}
	return p, p.Load(), nil
}

type tried map[stats.Verdict]int

func decisive(l sample.Load) []string {
	switch l.Kind {
	case workload.Chat:
		return []string{workload.ConnectTime, workload.FirstTokenP50, workload.GapP50,
			workload.ResponseTime}
	case workload.SQL:
		return []string{workload.ConnectTime, workload.LatencyP50}
	}
	out := []string{}
	for _, g := range workload.ExecOf(l).Program.Gauges {
		out = append(out, g.Name)
	}
	if len(out) == 0 {
		out = append(out, workload.Elapsed)
	}
	return out
}

func (t tried) add(r judge.Report) {
	l := r.Base().Plan.Loads[0]
	for _, c := range r.Base().Cells {
		if c.Baseline {
			continue
		}
		for _, m := range decisive(l) {
			if x := c.Metrics[m].Ratio; x != nil {
				t[x.Verdict]++
			}
		}
	}
}

// helped reports whether something was certainly better with fast and nothing certainly worse, and
// why.
func (t tried) helped() (kept bool, why string) {
	switch better, worse := t[stats.Better] > 0, t[stats.Worse] > 0; {
	case worse && better:
		return false, "something was certainly worse, although something else was better"
	case worse:
		return false, "something was certainly worse, and nothing better"
	case better:
		return true, "something was certainly better, and nothing certainly worse"
	case t[stats.Unclear] > 0:
		return false,
			"nothing was certainly better; a longer --budget or a quieter machine may show it"
	}
	return false, "nothing was better"
}
