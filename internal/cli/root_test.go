package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	secrets "github.com/bridgetoll/bridgetoll/internal/text/secret"
)

type hinted struct{ error }

func (hinted) Hint() string { return "toll clean" }
func (hinted) Left()        {}

func TestHintOfWhatIsLeft(t *testing.T) {
	left := hinted{errors.New("left behind: 1 pod")}
	failed := &failure{exitFailed, errors.New("no row has a result"), "see above"}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"failed", failed, "see above"},
		{"failed-and-left", errors.Join(failed, left), "see above; toll clean"},
		{"deep", errors.Join(failed, fmt.Errorf("close: %w", errors.Join(errors.New("x"), left))),
			"see above; toll clean"},
		{"left", errors.Join(&failure{code: exitCells}, left), "toll clean"},
		{"left-alone", left, "toll clean"},
		{"without", &failure{exitFailed, errors.New("x"), ""}, ""},
		{"without-and-left", errors.Join(&failure{exitFailed, errors.New("x"), ""}, left),
			"toll clean"},
	} {
		if got := hintOf(tt.err, unsaid(tt.err)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Errors about what was left behind are printed even after a signal.
// A name that cannot be looked up has a hint whatever dialled it.
func TestHintOfUnknownHosts(t *testing.T) {
	err := fmt.Errorf("cache: %w", &net.DNSError{Err: "no such host", Name: "cache"})
	for _, err := range []error{err, &failure{exitFailed, err, ""}} {
		if got := hintOf(err, nil); got != vantage.CheckName {
			t.Errorf("%v: hint %q", err, got)
		}
	}
	if got := hintOf(usage(err, "another"), nil); got != "another" {
		t.Errorf("hint %q", got)
	}
}

// Nor does it matter what dialled a port at which nobody listens.
func TestHintOfRefusals(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = net.Dial("tcp", l.Addr().String())
	if got := hintOf(fmt.Errorf("cache: %w", err), nil); got != vantage.StartFirst {
		t.Errorf("%v: hint %q", err, got)
	}
	for _, none := range []error{syscall.ENETUNREACH, syscall.EHOSTUNREACH} {
		err := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", none)}
		if got := hintOf(fmt.Errorf("direct: %w", err), nil); got != vantage.CheckAddress {
			t.Errorf("%v: hint %q", err, got)
		}
	}
	if _, err = net.Dial("unix", t.TempDir()+"/none"); err == nil || hintOf(err, nil) != "" {
		t.Errorf("%v: hint %q", err, hintOf(err, nil))
	}
}

func TestUnsaid(t *testing.T) {
	var (
		stopped = signaled{syscall.SIGINT}
		left    = hinted{errors.New("left behind: 1 network")}
		bad     = errors.New("no row has a result")
	)
	for _, tt := range []struct {
		name string
		err  error
		want string // "": nothing
	}{
		{"signal", &failure{code: 130}, ""},
		{"signal-while-building", &failure{code: 130,
			err: errors.Join(errors.Join(stopped, nil), nil)}, ""},
		{"signal-and-what-waited", &failure{code: 130,
			err: errors.Join(stopped, fmt.Errorf("wait: %w", context.Canceled))}, ""},
		{"signal-and-left", errors.Join(&failure{code: 130, err: errors.Join(stopped, bad)}, left),
			bad.Error() + "\n" + left.Error()},
		{"signal-then-left", errors.Join(&failure{code: 130}, left), left.Error()},
		{"failure-and-left", errors.Join(&failure{code: exitFailed, err: bad}, left),
			bad.Error() + "\n" + left.Error()},
		{"failed-cells", &failure{code: exitCells}, ""},
		{"failure-of-a-wait", &failure{code: exitFailed, err: context.Canceled},
			context.Canceled.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := unsaid(tt.err); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// No error and no hint repeats a password, whichever command is given it, and as whatever.
func TestErrorsHideTypedPasswords(t *testing.T) {
	const password = "s3cretpw"
	words := []string{"postgres://app:" + password + "@127.0.0.1:1/shop",
		"app:" + password + "@h:6379",
		"http://u:" + password + "@127.0.0.1:1", "mysql://app@127.0.0.1:1/shop?password=" + password}
	repeated := false
	for _, c := range newRoot(env{stdout: io.Discard, stderr: io.Discard}).Commands() {
		for i, word := range words {
			lines := [][]string{{word}, {c.Name(), word}, {c.Name(), word, word}, {c.Name(), "--x" + word}}
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if i == 0 && slices.Contains([]string{"sql", "mesh", "ports"}, c.Name()) &&
					f.NoOptDefVal == "" && f.Name != saveFlag && f.Name != outputFlag {
					lines = append(lines, []string{c.Name(), "postgres://h/d", "--" + f.Name + "=" + word,
						"--dry-run"})
				}
			})
			for _, args := range lines {
				_, _, said := toll(t, args...)
				repeated = repeated || strings.Contains(said, secrets.Mask)
				if strings.Contains(said, password) {
					t.Errorf("toll %q says:\n%s", args, said)
				}
			}
		}
	}
	if !repeated {
		t.Error("nothing repeats any argument")
	}
}

// A command in a hint can be entered as it is.
func TestHintsQuoteNames(t *testing.T) {
	const name = "my run's.jsonl"
	for _, tt := range []struct {
		args []string
		hint string
	}{
		{[]string{"view", name}, `toll report 'my run'\''s.jsonl' prints it`},
		{[]string{"gate", name}, `toll gate 'my run'\''s.jsonl' 'bridge.throughput >= 0.9 of host'`},
		{[]string{"gate", "run.jsonl", "--expect", "it's >= 1"},
			"--expect takes a file; a sentence needs no flag: toll gate FILE 'it'\\''s >= 1'"},
		{[]string{"gate", "run.jsonl", "--expect", "my rules.txt"}, ""},
	} {
		_, _, said := toll(t, tt.args...)
		_, hint, _ := strings.Cut(strings.TrimSpace(said), "toll: hint: ")
		if hint != tt.hint {
			t.Errorf("hint %q, want %q", hint, tt.hint)
		}
	}
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	try := tryFlags{commands: name}
	err := try.failed(&ports.Report{Tried: &ports.Tried{Code: notFound}})
	if got := hintOf(err, err); got != `toll ports --try '@my run'\''s.jsonl'` {
		t.Errorf("hint %q", got)
	}
}

// Where a hint means the command that was typed, it has its arguments.
func TestHintsRepeatCommands(t *testing.T) {
	for _, tt := range []struct {
		hint string
		args []string
		want string
	}{
		{"sudo toll …; --on lab needs no root", []string{"compare", "--on", "docker"},
			"sudo toll compare --on docker; --on lab needs no root"},
		{"sudo toll trace …", []string{"trace", "a=http://h/x?y&z"},
			"sudo toll trace 'a=http://h/x?y&z'"},
		{"sudo toll trace …", []string{"trace", "h:1", "--client", "redis-cli -a secret"},
			"sudo toll trace …"},
		{"sudo toll trace …", []string{"trace", "h:1", "--client=x"}, "sudo toll trace …"},
		{"sudo toll trace …", []string{"trace", "h:1\nh:2"}, "sudo toll trace …"},
		{"sudo DOCKER_HOST=unix:///run/d.sock toll …", nil, "sudo DOCKER_HOST=unix:///run/d.sock toll"},
		{"toll trace", []string{"x"}, "toll trace"},
		{"sudo toll …", []string{strings.Repeat("x", 200)}, "sudo toll …"},
	} {
		if got := retyped(tt.hint, tt.args); got != tt.want {
			t.Errorf("%q after %q: %q, want %q", tt.hint, tt.args, got, tt.want)
		}
	}
}
