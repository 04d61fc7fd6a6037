package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// The page about choosing a mode names every mode, in a heading or between backquotes.
func TestManualNamesEveryMode(t *testing.T) {
	text, err := os.ReadFile("../../docs/choosing-a-mode.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mode.All() {
		name := regexp.QuoteMeta(string(m.Name))
		if !regexp.MustCompile("(?m)^## (.*, )?" + name + "(,|$)|`" + name + "`").Match(text) {
			t.Errorf("the page lacks %s", m.Name)
		}
	}
}

// toll understands every command line that the manual shows without output, with its flags and
// their values.
func TestManualCommands(t *testing.T) {
	pages := manual(t)
	t.Chdir(t.TempDir()) // for the files that they write
	remark := regexp.MustCompile(`\s{3,}.*`)
	checked := 0
	for page, text := range pages {
		for _, b := range plainBlocks(text) {
			for l := range strings.Lines(b) {
				l = remark.ReplaceAllString(strings.TrimSpace(l), "")
				l = strings.TrimPrefix(strings.TrimPrefix(l, "$ "), "sudo ")
				args := strings.Fields(l)
				if len(args) == 0 || args[0] != "toll" || strings.ContainsAny(l, "…·'|<>()") || strings.HasSuffix(l, "\\") {
					continue // a shell's syntax, or shortened
				}
				c, rest, err := newRoot(env{}).Find(args[1:])
				if err != nil {
					t.Errorf("%s: %s: %v", page, l, err)
					continue
				}
				checked++
				// Not every format can print a plan, and toll fast on has one of its ports only.
				if c.Flags().Lookup("dry-run") == nil || slices.Contains(args, "--format") || c.Name() == "on" {
					if err := c.ParseFlags(rest); err != nil {
						t.Errorf("%s: %s: %v", page, l, err)
					}
					continue
				}
				var out bytes.Buffer
				if code := run(context.Background(), env{stdout: &out, stderr: &out}, append(args[1:], "--dry-run")); code == exitUsage {
					t.Errorf("%s: %s: %s", page, l, &out)
				}
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d command lines", checked)
	}
}

// plainBlocks returns the blocks of a page whose fence names no language.
func plainBlocks(text string) (out []string) {
	fence, block := "", ""
	for l := range strings.Lines(text) {
		mark := strings.TrimRight(l, "\n")
		switch {
		case fence == "" && strings.HasPrefix(mark, "```"):
			fence, block = mark, ""
		case fence != "" && mark == "```":
			if fence == mark {
				out = append(out, block)
			}
			fence = ""
		default:
			block += l
		}
	}
	return out
}
