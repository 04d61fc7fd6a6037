package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	var out bytes.Buffer
	if code := run(context.Background(), env{stdout: &out, stderr: &out}, []string{"man", dir}); code != exitOK || out.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, &out)
	}
	root := newRoot(env{stdout: &out, stderr: &out})
	for _, c := range root.Commands() {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		if c.Hidden || !c.IsAvailableCommand() { // help topics
			if err == nil {
				t.Errorf("%s is of a hidden command", name)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.HasPrefix(string(page), ".nh\n.TH") ||
			!strings.Contains(string(page), "toll "+version) {
			t.Errorf("%s begins with %.100q", name, page)
		}
		if first, _, _ := strings.Cut(strings.TrimSpace(c.Example), "\n"); !strings.Contains(plain(string(page)), first) {
			t.Errorf("%s has no example %q:\n%s", name, first, page)
		}
	}
}

func plain(roff string) string {
	return strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\e`, `\`, `\&`, "", `\\`, `\`).Replace(roff)
}

func TestEscape(t *testing.T) {
	const text = "a `b` *c* _d_ <e> f\\g\n\n  0  a_b"
	if got, want := escape(text), "a \\`b\\` \\*c\\* \\_d\\_ \\<e> f\\\\g\n\n      0  a_b"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var out bytes.Buffer
		if code := run(context.Background(), env{stdout: &out, stderr: &out}, []string{"completion", shell}); code != exitOK || !strings.Contains(out.String(), "__complete") {
			t.Errorf("%s: exit code %d: %.300s", shell, code, &out)
		}
	}
}
