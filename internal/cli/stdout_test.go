package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// testdata/fake/lost.txtar has what commands print besides their help.
func TestHelpThatCannotBeWritten(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	const want = "toll: error: write output: write /dev/full: no space left on device\n" +
		"toll: hint: free some space\n"
	n := 0
	var try func(c *cobra.Command)
	try = func(c *cobra.Command) {
		n++
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		var said bytes.Buffer
		code := run(context.Background(), env{stdout: full, stderr: &said}, args)
		if code != exitFailed || said.String() != want {
			t.Errorf("toll %q: exit code %d, %s", args, code, said.String())
		}
		for _, sub := range c.Commands() {
			if !sub.IsAdditionalHelpTopicCommand() {
				try(sub)
			}
		}
	}
	try(newRoot(env{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}))
	if n < 30 {
		t.Errorf("only %d commands", n)
	}
}

// Hints have no sudo for root on a machine without it.
func TestHintsWithoutSudo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	want := "toll: hint: sudo toll trace --attach 127.0.0.1:6379\n"
	if os.Geteuid() == 0 {
		want = strings.Replace(want, "sudo ", "", 1)
	}
	var said bytes.Buffer
	run(context.Background(), env{stdout: io.Discard, stderr: &said},
		[]string{"trace", "--attach", "redis://127.0.0.1"})
	if !strings.HasSuffix(said.String(), want) {
		t.Errorf("%s, want %s", said.String(), want)
	}
}

// On a terminal without sudo, commands with sudo are explained once.
func TestWithoutSudo(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path, text string
		to               *os.File
		said             bool
	}{
		{"no-sudo", "/nowhere", "hint: sudo toll ports\n", terminal, true},
		{"sudo", bin, "hint: sudo toll ports\n", terminal, false},
		{"file", "/nowhere", "hint: sudo toll ports\n", file, false},
		{"other-words", "/nowhere", "pseudo toll ports\n", terminal, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PATH", tt.path)
			out := &output{Writer: tt.to}
			if _, err := io.WriteString(out, tt.text); err != nil {
				t.Fatal(err)
			}
			if got := withoutSudo(&output{Writer: tt.to}, out); (got != "") != tt.said {
				t.Errorf("%q", got)
			}
		})
	}
}
