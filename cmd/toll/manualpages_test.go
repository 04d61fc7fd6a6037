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

// The page about choosing a mode shows every mode with all its paths in the catalogue, and no
// others.
func TestManualPictures(t *testing.T) {
	const page = "../../docs/choosing-a-mode.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[mode.Name][]string{}
	picture := regexp.MustCompile(`^(\S+ → \S+) +client ─ (.*) ─ server *(.*)$`)
	var heading []mode.Name
	for l := range strings.Lines(string(text)) {
		l = strings.TrimRight(l, "\n")
		if words, ok := strings.CutPrefix(l, "## "); ok {
			heading = nil
			for _, w := range strings.Split(words, ", ") {
				if _, ok := mode.Find(mode.Name(w)); ok {
					heading = append(heading, mode.Name(w))
					drawn[mode.Name(w)] = nil
				}
			}
		}
		m := picture.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		of := heading
		if m[3] != "" && !strings.HasPrefix(m[3], "all ") {
			of = []mode.Name{mode.Name(m[3])}
		}
		for _, name := range of {
			drawn[name] = append(drawn[name], m[1]+": "+m[2])
		}
	}
	for _, m := range mode.All() {
		got, ok := drawn[m.Name]
		if !ok {
			t.Errorf("%s has no heading", m.Name)
			continue
		}
		var want []string
		for _, r := range m.Routes {
			if r.OnRequest() {
				continue // as over IPv4, except for what its paragraph says
			}
			var hops []string
			for _, h := range r.Hops {
				hops = append(hops, string(h))
			}
			want = append(want, string(r.From)+" → "+string(r.To)+": "+strings.Join(hops, " ─ "))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is drawn as\n\t%s\nand is\n\t%s", m.Name, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
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
				// Not every format can print a plan.
				if c.Flags().Lookup("dry-run") == nil || slices.Contains(args, "--format") {
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
