package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// forOutput are the flags that only decide where output goes, and whether each takes a value.
var forOutput = map[string]bool{"save": true, "output": true, "format": true,
	"force": false, "live": false, "details": false, "quiet": false}

// commandOf returns the arguments that repeat a run, without those for its output. It returns nil
// for a mesh, and for runs that involve the user's own programs or servers, whose command lines may
// contain passwords.
func commandOf(p sample.Plan, args []string) []string {
	foreign := func(l sample.Load) bool { return workload.Of(l).Foreign }
	if p.Foreign() || p.Mesh != nil || slices.ContainsFunc(p.Loads, foreign) {
		return nil
	}
	out := []string{}
	for i := 0; i < len(args); i++ {
		name, is := strings.CutPrefix(args[i], "--")
		name, _, joined := strings.Cut(name, "=")
		valued, drop := forOutput[name]
		switch {
		case !is || !drop:
			out = append(out, args[i])
		case valued && !joined:
			i++
		}
	}
	if len(out) == 0 { // "toll" alone; nil means that the command is not known
		out = []string{"compare"}
	}
	return out
}

// remeasure repeats the run of a results file with its own command, and returns the results.
func remeasure(ctx context.Context, e env, h sample.Header) (*sample.File, error) {
	if h.Command == nil {
		return nil, usage(errors.New("the results file does not say by which command it was measured"),
			"measure again, and give the new file: --confirm again.jsonl")
	}
	here, _ := machine.Machine{}.Read() // what cannot be read is left empty
	if here.Kernel != h.Environment.Kernel || here.CPUModel != h.Environment.CPUModel {
		return nil, usage(fmt.Errorf("the run was made on another machine: Linux %s on %s", h.Environment.Kernel, h.Environment.CPUModel),
			"measure again there, and give the new file: --confirm again.jsonl")
	}
	dir, err := os.MkdirTemp("", "toll-gate-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	saved := filepath.Join(dir, "again.jsonl")
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, self, append(slices.Clone(h.Command), "--save", saved, "--quiet")...)
	cmd.Stderr = &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it cleans up
	const patience = 30 * time.Second
	cmd.WaitDelay = patience
	runErr := cmd.Run()
	if stop := interrupted(ctx); stop != nil {
		return nil, stop
	}
	in, err := os.Open(saved)
	if err != nil { // it did not start
		return nil, &failure{exitFailed, fmt.Errorf("measure again: %w: %s", runErr, strings.TrimSpace(said.String())), ""}
	}
	defer in.Close()
	f, err := sample.Read(in)
	if err != nil {
		return nil, fmt.Errorf("measure again: %w", errors.Join(err, runErr))
	}
	return f, nil
}
