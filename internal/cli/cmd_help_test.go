package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func shownCommands(t *testing.T) (out []*cobra.Command) {
	t.Helper()
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		out = append(out, c)
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(newRoot(env{stdout: io.Discard, stderr: io.Discard}))
	if len(out) < 10 {
		t.Fatalf("%d commands", len(out))
	}
	return out
}

// A new flag has a group, a new command an entry in commandGroups.
func TestFlagsAndCommandsAreGrouped(t *testing.T) {
	for _, c := range shownCommands(t) {
		if !c.HasParent() {
			continue
		}
		for _, g := range grouped(c, c.Flags()) {
			for _, f := range g.flags {
				if g.title == otherFlags && len(grouped(c, c.Flags())) > 1 {
					t.Errorf("%s: --%s has no group", c.CommandPath(), f.Name)
				}
			}
		}
		if c.Parent().HasParent() || !c.Runnable() {
			continue
		}
		if c.GroupID == "" {
			t.Errorf("%s is in no group of commandGroups", c.Name())
		}
	}
}

// Commands to copy may be wider than a narrow terminal.
func TestFlagsHelpWidth(t *testing.T) {
	for _, c := range shownCommands(t) {
		for _, columns := range []int{40, 60, helpWidth} {
			copied := false
			for line := range strings.Lines(helpOf(c, columns, true) + helpOf(c, columns, false)) {
				line = strings.TrimRight(line, "\n")
				if line == "" || !strings.HasPrefix(line, " ") {
					copied = line == "Examples:" || line == "Usage:"
				}
				wide := columns
				if copied || strings.HasPrefix(line, "  ") &&
					testgolden.HasLine(c.Long, line) ||
					strings.HasPrefix(line, "  ") && c.Parent() != nil && !c.Runnable() ||
					c.HasParent() && c.Parent().Name() == "completion" {
					wide = helpWidth
				}
				if ansi.StringWidth(line) > wide && len(strings.Fields(line)) > 1 {
					t.Errorf("%s at %d columns: %q", c.CommandPath(), columns, line)
				}
				if strings.TrimRight(line, " ") != line {
					t.Errorf("%s at %d columns ends with a space: %q", c.CommandPath(), columns,
						line)
				}
			}
		}
	}
}

func TestFlagsHaveExamples(t *testing.T) {
	bare := map[string]bool{"mesh": false, "clean": true, "version": true, "help": true,
		"completion": true}
	for _, c := range shownCommands(t) {
		if c.Runnable() && (!c.HasParent() || !c.Parent().HasParent()) && !bare[c.Name()] &&
			!c.HasExample() {
			t.Errorf("%s has no example", c.CommandPath())
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		text, margin string
		columns      int
		want         string
	}{
		{"", "", 10, ""},
		{"one two three", "", 7, "one two\nthree\n"},
		{"one two", "  ", 5, "  one\n  two\n"},
		{"extraordinarily long", "", 5, "extraordinarily\nlong\n"},
		{"µ… µ…", "", 5, "µ… µ…\n"},
	} {
		if got := wrap(tt.text, tt.margin, tt.columns); got != tt.want {
			t.Errorf("%q at %d: %q, want %q", tt.text, tt.columns, got, tt.want)
		}
	}
	if got := paragraphs("a b\nc\n\n  as is   it\nd", 12); got != "a b c\n\n  as is   it\nd\n" {
		t.Errorf("%q", got)
	}
}

func TestShortHelp(t *testing.T) {
	for _, c := range shownCommands(t) {
		if !c.HasParent() {
			continue
		}
		var all []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" {
				all = append(all, f.Name)
			}
		})
		if !shortened(c) {
			const mostShown = 24
			if len(all) > mostShown {
				t.Errorf("%s shows %d flags: name its main ones", c.CommandPath(), len(all))
			}
			continue
		}
		var main []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if isMain(c, f) && !f.Hidden {
				main = append(main, f.Name)
			}
		})
		short, long := helpOf(c, helpWidth, false), helpOf(c, helpWidth, true)
		rest := fmt.Sprintf("%d more flags: %s --help-all", len(all)-len(main), c.CommandPath())
		if n := strings.Count(short, "\n  --") + strings.Count(short, "\n  -6, --"); n != len(main) || n > 14 || !strings.Contains(strings.ReplaceAll(short, "\n", " "), rest) {
			t.Errorf("%s shows %d flags of %d:\n%s", c.CommandPath(), n, len(main), short)
		}
		for _, name := range all {
			if !slices.Contains(strings.Fields(long), "--"+name) {
				t.Errorf("%s --help-all lacks --%s", c.CommandPath(), name)
			}
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var out bytes.Buffer
		if code := run(context.Background(), env{stdout: &out, stderr: &out}, []string{"completion", shell}); code != exitOK || !slices.Contains(strings.Fields(out.String()), "__complete") {
			t.Errorf("%s: exit code %d: %.300s", shell, code, &out)
		}
	}
}
