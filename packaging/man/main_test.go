package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/cli"
)

func TestMan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if err := write(dir); err != nil {
		t.Fatal(err)
	}
	root, version, _ := cli.Manual()
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
