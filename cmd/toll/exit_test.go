package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

func TestExitCode(t *testing.T) {
	missing := &path.UnsupportedError{Missing: "the kernel", Remedy: "another one"}
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"none", nil, exitOK},
		{"any", errors.New("odd"), exitFailed},
		{"usage", fmt.Errorf("a: %w", usage(errors.New("b"), "")), exitUsage},
		{"unsupported", fmt.Errorf("mesh: %w", missing), exitNothing},
		{"headroom", fmt.Errorf("toll itself: %w", &machine.HeadroomError{}), exitNothing},
		{"nothing-built", &engine.NothingBuiltError{Err: errors.New("no")}, exitNothing},
		{"said-otherwise", &failure{exitFailed, missing, ""}, exitFailed},
		{"joined", errors.Join(&failure{code: exitSignalled + int(syscall.SIGTERM)}, errors.New("left behind")), 143},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := exitCode(tt.err); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// The manual lists all exit codes in order, and help describes them in the same words.
func TestManualExitCodes(t *testing.T) {
	text, err := os.ReadFile("../../docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, means []string
	for _, m := range regexp.MustCompile(`(?m)^\| (\d[\d, ]*) \| (.*) \|$`).FindAllStringSubmatch(string(text), -1) {
		got, means = append(got, m[1]), append(means, strings.ReplaceAll(m[2], "`", ""))
	}
	var want []string
	for _, code := range []int{exitOK, exitFailed, exitUsage, exitNothing, exitCells, exitBadFile, exitWorse, exitUnclear, exitUnjudged} {
		want = append(want, fmt.Sprint(code))
	}
	want = append(want, fmt.Sprintf("%d, %d, %d", exitSignalled+int(syscall.SIGINT), exitSignalled+int(syscall.SIGTERM), exitSignalled+int(syscall.SIGHUP)))
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, c := range exitCodes {
		if i >= len(want) || c.code != want[i] {
			t.Errorf("help has %q, the manual %q", c, want)
		}
		if i < len(means) && c.means != means[i] {
			t.Errorf("%s: help says\n%s\nthe manual\n%s", c.code, c.means, means[i])
		}
	}
}
