package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/judge/gate"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

type gateFlags struct {
	out     outputFlags
	expect  string
	unclear string
	confirm []string // further files, or the number of repetitions
}

func newGate(e env) *cobra.Command {
	var f gateFlags
	c := &cobra.Command{
		Use:   "gate FILE 'SENTENCE'…",
		Short: "Check a results file against rules, for CI",
		Long: fmt.Sprintf(`gate checks whether sentences hold for a results file. Its exit code is

  %d  if all hold
  %d  if one is certainly violated
  %d  if the file has no result for one
  %d  if one is unclear (--unclear pass: %d)

A sentence is MODE.METRIC, a comparator, and a limit: a number with its unit, or a ratio
to another mode. It must hold for every row that it matches; from, to, load, on and pin
narrow that down. Metrics are throughput, latency (the median), latency_p99, cpu, and all
others of the results file.`, exitOK, exitWorse, exitCells, exitUnclear, exitOK),
		Example: `  toll gate run.jsonl 'publish-proxy.throughput >= 0.9 of host'
  toll gate run.jsonl 'bridge.latency <= 50us from container' \
      'bridge.cpu < 150% of host load rr'
  toll gate run.jsonl --expect network.rules --confirm 2 --unclear pass`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("gate needs a results file"),
					"toll gate run.jsonl 'bridge.throughput >= 0.9 of host'")
			}
			return nil
		},
		RunE: atOnce(func(c *cobra.Command, args []string) error { return f.run(e, c, args) }),
	}
	add(c.Flags(),
		flagDef{name: expectFlag, group: toRead, value: text(&f.expect, ""), word: "FILE",
			help: "read sentences from this file, one on a line; # begins a comment"},
		flagDef{name: "confirm", group: toRead, value: list(&f.confirm), word: "N|FILE",
			help:  "repeat the run up to N times while a sentence is violated: it is unclear unless it is violated each time; or FILE,…: the results files of further runs",
			files: resultsFile},
		flagDef{name: "unclear", group: toRead, value: text(&f.unclear, "fail"), word: "fail|pass",
			help: "what an unclear sentence does: fail or pass", offer: []string{"fail", "pass"}})
	f.out.add(c.Flags(), document.AGate)
	return c
}

func (f *gateFlags) run(e env, c *cobra.Command, args []string) error {
	if err := f.out.check(place{"", args[0]}, place{expectFlag, f.expect}); err != nil {
		return err
	}
	if _, err := parseOne(f.unclear, closed("value of --unclear", "fail", "pass")); err != nil {
		return err
	}
	var rules []rule
	for _, text := range args[1:] {
		rules = append(rules, rule{text: text})
	}
	read, err := readRules(e, f.expect)
	if err != nil {
		return err
	}
	if rules = append(rules, read...); len(rules) == 0 {
		return usage(errors.New("gate needs a sentence"),
			sample.CommandLine([]string{"gate", args[0], "bridge.throughput >= 0.9 of host"}))
	}
	file, err := readResults(e, args[0], c.InOrStdin())
	if err != nil {
		return err
	}
	sentences, err := parseSentences(rules, file)
	if err != nil {
		return err
	}
	r := gate.Judge(args[0], file, sentences)
	if err := f.confirmed(e, c, file, r, sentences); err != nil {
		return err
	}
	if err := f.out.print(e, view.Gate(r)); err != nil {
		return err
	}
	if code := gateCodes[r.Outcome]; code != exitOK &&
		(r.Outcome != gate.Unclear || f.unclear == "fail") {
		return &failure{code: code}
	}
	return nil
}

const mostConfirm = 10

// confirmed judges further runs, which it reads from files or makes, and adds their verdicts to r.
func (f *gateFlags) confirmed(e env, c *cobra.Command, file *sample.File, r *gate.Report,
	sentences []gate.Sentence) error {
	times, err := 0, error(nil)
	if len(f.confirm) == 1 {
		if times, err = strconv.Atoi(f.confirm[0]); err == nil &&
			(times < 1 || times > mostConfirm) {
			return usage(fmt.Errorf("--confirm %d: must be from 1 to %d", times, mostConfirm), "")
		}
	}
	if times == 0 {
		for _, name := range f.confirm {
			further, err := readResults(e, name, c.InOrStdin())
			if err != nil {
				return err
			}
			r.Confirm(gate.Judge(name, further, sentences))
		}
		return nil
	}
	for i := range times {
		if r.Outcome != gate.Violated {
			return nil
		}
		say(e.stderr, fmt.Sprintf("toll: a sentence is violated: measuring again, %d of at most %d",
			i+1, times))
		further, err := remeasure(c.Context(), file.Header)
		if err != nil {
			return err
		}
		r.Confirm(gate.Judge(fmt.Sprintf("the %s further run", ordinal(i+1)), further, sentences))
	}
	return nil
}

func ordinal(n int) string {
	return strconv.Itoa(n) + cmp.Or(map[int]string{1: "st", 2: "nd", 3: "rd"}[n], "th")
}

var gateCodes = map[gate.Outcome]int{gate.Holds: exitOK, gate.Violated: exitWorse,
	gate.Missing: exitCells, gate.Unclear: exitUnclear}

type rule struct {
	text, where string // where is "" for an argument
}

func parseSentences(rules []rule, f *sample.File) ([]gate.Sentence, error) {
	known := gate.WordsOf(f)
	var out []gate.Sentence
	for _, r := range rules {
		s, err := gate.Parse(r.text, known)
		if err != nil && r.where != "" {
			err = fmt.Errorf("%s: %w", r.where, err)
		}
		if err != nil {
			return nil, usage(err, "")
		}
		out = append(out, s)
	}
	return out, nil
}

const mostRules = 1000

func readRules(e env, name string) ([]rule, error) {
	if name == "" {
		return nil, nil
	}
	f, err := openInput(e, name)
	if err != nil {
		hint := ""
		if strings.Contains(name, " ") && strings.ContainsAny(name, "<>=≤≥") {
			hint = "--expect takes a file; a sentence needs no flag: " +
				sample.CommandLine([]string{"gate", "FILE", name})
		}
		return nil, usage(fmt.Errorf("--expect: %w", err), hint)
	}
	defer f.Close()
	var out []rule
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text != "" {
			out = append(out, rule{text, fmt.Sprintf("--expect %s: line %d", name, n)})
		}
		if len(out) > mostRules {
			return nil, usage(fmt.Errorf("--expect %s: more than %d sentences", name, mostRules), "")
		}
	}
	if err := lines.Err(); err != nil {
		return nil, usage(fmt.Errorf("--expect %s: %w", name, err), "")
	}
	if len(out) == 0 {
		return nil, usage(fmt.Errorf("--expect %s: the file has no sentence", name),
			"one on a line, such as bridge.throughput >= 0.9 of host")
	}
	return out, nil
}

// repeated lists the commands of results files that toll runs again. Flags that trust the command
// line are refused, because others may have written the results file.
var repeated = []string{"compare", "ladder", "trace", "scale", "advise"}

func checkRepeated(args []string) error {
	root := newRoot(env{stdout: io.Discard, stderr: io.Discard})
	c, rest, err := root.Find(args)
	if err == nil && c != root && !slices.Contains(repeated, c.Name()) {
		err = errors.New("it is not a measurement of modes")
	}
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil && slices.ContainsFunc(c.Flags().Args(), isRoute) {
		err = errors.New("it measures a server")
	}
	switch {
	case errors.Is(err, pflag.ErrHelp): // cobra would print help and succeed
		err = errors.New("it prints help")
	case err == nil && c.Flags().ArgsLenAtDash() >= 0: // toll adds flags
		err = errors.New("it contains --")
	}
	if err == nil && c == root {
		err = noCommand(c, c.Flags().Args())
	}
	if err == nil {
		c.Flags().Visit(func(f *pflag.Flag) {
			own := f.Name == proxyFlag && slices.Contains(ownProxies, f.Value.String())
			if (usedAs(f, trusts) || f.Name == helpAllFlag) && !own {
				err = fmt.Errorf("a results file may not set --%s", f.Name)
			}
		})
	}
	if err != nil {
		return usage(fmt.Errorf("toll does not repeat the results file's command: %s: %w",
			printable.Line(sample.CommandLine(args)), err),
			"if you trust the command, run it with --save again.jsonl, then give --confirm again.jsonl")
	}
	return nil
}

func remeasure(ctx context.Context, h sample.Header) (*sample.File, error) {
	if h.Command == nil {
		return nil,
			usage(errors.New("the results file does not record the command that measured it"),
				"measure again, and give the new file: --confirm again.jsonl")
	}
	if err := checkRepeated(h.Command); err != nil {
		return nil, err
	}
	here, _ := machine.Machine{}.Read() // what cannot be read is left empty
	if here.Kernel != h.Environment.Kernel || here.CPUModel != h.Environment.CPUModel {
		return nil, usage(fmt.Errorf("the run was made on another machine: Linux %s on %s",
			h.Environment.Kernel, h.Environment.CPUModel),
			"measure again there, and give the new file: --confirm again.jsonl")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, out, err := os.Pipe() // a killed toll leaves no file
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var said, saved bytes.Buffer
	cmd := exec.CommandContext(ctx, self, append(
		slices.Clone(h.Command), "--save", "/dev/fd/3", "--quiet")...)
	cmd.Stderr, cmd.ExtraFiles = &said, []*os.File{out}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // so that it cleans up
	const patience = 30 * time.Second
	cmd.WaitDelay = patience
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
	runtime.LockOSThread() // Pdeathsig is tied to the thread
	defer runtime.UnlockOSThread()
	runErr := cmd.Start()
	_ = out.Close()
	if runErr == nil {
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = saved.ReadFrom(in) // torn results show below
		}()
		runErr = cmd.Wait()
		_ = in.SetReadDeadline(time.Now().Add(time.Second)) // for what it left in the pipe
		<-read
	}
	if stop := interrupted(ctx); stop != nil {
		return nil, stop
	}
	if saved.Len() == 0 { // it did not start to measure
		return nil, &failure{exitFailed, fmt.Errorf("measure again: %w: %s",
			cmp.Or(runErr, errors.New("no results")), strings.TrimSpace(said.String())), ""}
	}
	f, err := sample.Read(&saved)
	if err != nil {
		return nil, fmt.Errorf("measure again: %w", errors.Join(err, runErr))
	}
	return f, nil
}
