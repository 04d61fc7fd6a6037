package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/judge/gate"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func manual(t *testing.T) (pages map[string]string) {
	t.Helper()
	pages = map[string]string{}
	err := filepath.WalkDir("../../docs", func(p string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(p) != ".md" {
			return err
		}
		text, err := os.ReadFile(p)
		pages[p] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

var example = regexp.MustCompile("(?ms)^```console\n\\$ (toll[^\n]*)\n(.*?)^```$")

var beats = regexp.MustCompile(`(?m)^toll: \d+ of \d+ s, .*\n`)

// Each example runs with one round instead of the stated number. Figures, verdicts and the order of
// rows may differ, and "…" replaces lines that the manual leaves out.
func TestManual(t *testing.T) {
	t.Parallel()
	if !mayBuild() {
		pathtest.SkipOrFail(t, "network namespaces need root here")
	}
	bin := scripted
	if testgolden.Updating() {
		bin = binary(t)
		saveShop(t, bin)
	}
	examples := 0
	for page, text := range manual(t) {
		found := example.FindAllStringSubmatch(text, -1)
		if examples += len(found); len(found) > 0 {
			t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
				if !testgolden.Updating() {
					inLabs(t)
				}
				runPage(t, bin, page, text, found)
			})
		}
	}
	if examples < 5 {
		t.Errorf("only %d examples", examples)
	}
}

func runPage(t *testing.T, bin, page, text string, examples [][]string) {
	for _, e := range examples {
		args := shellWords(e[1])[1:]
		if _, err := exec.LookPath("redis-server"); err != nil && slices.Contains(args, "redis") {
			continue
		}
		if at := slices.Index(args, "--rounds") + 1; at > 0 && !testgolden.Updating() {
			args[at] = "1" // more rounds only narrow figures and verdicts, which are not compared
			if args[0] != "run" {
				args = append(args, "--window", "60ms")
			}
		}
		if slices.Contains(args, "--save") {
			args = again(args)
		}
		if args[0] == "ports" {
			shop, err := filepath.Abs(shopFile)
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, "--"+fromFileFlag, shop)
		}
		r, code := runPatiently(t, bin, nil, func(out string) bool {
			return testgolden.Updating() || differs(e[2], out) == ""
		}, args...)
		out := r.out.String()
		if code == exitOK && differs(e[2], out) != "" && !testgolden.Updating() && pathtest.TooBusy(out) {
			// Other columns are shown then, such as that of what limits a row.
			t.Logf("%s: not compared: the machine was too busy in each of %d runs", e[1], tries)
			continue
		}
		if slices.Contains(args, "--"+tryFlag) && code == exitWorse { // the example takes ports away
			code = exitOK
		}
		if said := beats.ReplaceAllString(r.errOut.String(), ""); code != exitOK || said != "" {
			t.Errorf("%s: exit code %d, %s", e[1], code, said)
		}
		if testgolden.Updating() {
			text = strings.Replace(text, e[0], "```console\n$ "+e[1]+"\n"+recut(e[2], out)+"```", 1)
			continue
		}
		if diff := differs(e[2], out); diff != "" {
			t.Errorf("%s: -manual +output:\n%s\nof:\n%s", e[1], diff, out)
		}
	}
	if testgolden.Updating() {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shellWords returns the words of a command line up to a pipe, a redirection or a further command.
// Only quotes are special in it.
func shellWords(line string) (words []string) {
	word, quote := "", rune(0)
	for _, r := range line + " " {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		case quote != 0 || !unicode.IsSpace(r):
			word += string(r)
		case slices.Contains([]string{"|", ">", ">>", "&&", "#"}, word):
			return words
		case word != "":
			words, word = append(words, word), ""
		}
	}
	return words
}

func TestManualLinks(t *testing.T) {
	pages := manual(t)
	for _, p := range []string{"../../README.md", "../../ARCHITECTURE.md", "../../CONTRIBUTING.md",
		"../../SECURITY.md"} {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		pages[p] = string(text)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			target := page
			if to != "" {
				target = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: no such file", page, m[1])
			} else if anchor != "" && !slices.Contains(anchors(pages[target]), anchor) {
				t.Errorf("%s: link to %s: no such heading", page, m[1])
			}
		}
	}
}

func anchors(text string) []string {
	var out []string
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		out = append(out, strings.ReplaceAll(
			drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}

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

// othersFlags are flags of other programs in the manual.
var othersFlags = strings.Fields("bind body-file config-net configure csv ctstate dport dports " +
	"driver duration host mtu net network no-color no-tui now opt port port-driver publish " +
	"resolve security-opt user vus")

func TestManualNamesFlagsThatExist(t *testing.T) {
	known := map[string]bool{"help": true, helpAllFlag: true}
	for _, name := range othersFlags {
		known[name] = true
	}
	for _, c := range shownCommands(t) {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = known[f.Name] || !f.Hidden })
	}
	pages := manual(t)
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages["README.md"] = string(readme)
	named := 0
	for page, text := range pages {
		for _, m := range regexp.MustCompile("(?:^|[\\s`'(])--([a-z][a-z0-9-]*)").FindAllStringSubmatch(text, -1) {
			if named++; !known[m[1]] {
				t.Errorf("%s: there is no flag --%s", page, m[1])
			}
		}
	}
	if named < 300 {
		t.Errorf("only %d flags are named", named)
	}
}

// Each command line that the manual shows is accepted, as far as --dry-run or its flags tell.
func TestManualCommands(t *testing.T) {
	pages := manual(t)
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages["README.md"] = string(readme)
	t.Chdir(t.TempDir()) // for the files that they write
	checked := 0
	for page, text := range pages {
		for _, l := range tollLines(text) {
			if err := accepted(shellWords(l)[1:]); err != nil {
				t.Errorf("%s: %s: %v", page, l, err)
			}
			checked++
		}
	}
	if checked < 400 {
		t.Errorf("only %d command lines", checked)
	}
}

var (
	codeSpan = regexp.MustCompile("`((?:sudo )?toll [^`]+)`")
	remark   = regexp.MustCompile(`[^ ]\s{3,}.*`)
	// placeholder matches words that stand for others, such as PORT, [MODE…] and "…".
	placeholder = regexp.MustCompile(`^(NAME=)?[A-Z][A-Z]+$|HOST|…|^\[`)
)

// tollLines returns the command lines of toll in a page: those of blocks, of which a line may go on
// behind a backslash or in a quote, and code spans. They are without prompts, sudo and remarks.
func tollLines(text string) (out []string) {
	add := func(l string) {
		if l = strings.TrimPrefix(l, "sudo "); strings.HasPrefix(l, "toll ") &&
			!strings.HasPrefix(l, "toll ·") {
			out = append(out, l)
		}
	}
	for _, b := range plainBlocks(text) {
		whole := ""
		for l := range strings.Lines(b) {
			l = strings.TrimPrefix(strings.TrimSpace(l), "$ ")
			whole += " " + remark.ReplaceAllStringFunc(l, func(s string) string { return s[:1] })
			if more, ok := strings.CutSuffix(whole, "\\"); ok {
				whole = more
			} else if strings.Count(whole, "'")%2 == 0 {
				add(whole[1:])
				whole = ""
			}
		}
		text = strings.Replace(text, b, "", 1)
	}
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		add(strings.Join(strings.Fields(m[1]), " "))
	}
	return out
}

// accepted returns why a command line is refused. Of one with a word that stands for others, only
// the command's name is tried, and so it is if the line ends with a flag that needs a value.
func accepted(args []string) error {
	c, rest, err := newRoot(env{}).Find(args)
	if err != nil || len(rest) == 0 || slices.ContainsFunc(rest, placeholder.MatchString) {
		return err
	}
	if f := c.Flags().Lookup(strings.TrimPrefix(rest[len(rest)-1], "--")); f != nil &&
		(f.NoOptDefVal == "" || c.Flags().Lookup("dry-run") == nil || len(rest) == 1) {
		return nil
	}
	var out bytes.Buffer
	said := env{stdout: &out, stderr: &out}
	switch {
	case c.Name() == "gate":
		for _, sentence := range slices.DeleteFunc(rest[1:], func(w string) bool {
			return !strings.ContainsAny(w, "<>")
		}) {
			if _, err := gate.Parse(sentence, gate.Words{}); err != nil {
				return err
			}
		}
	case c.Name() == "explain":
		if run(context.Background(), said, args) != exitOK {
			return errors.New(out.String())
		}
		return nil
	}
	// Not every format can print a plan, and toll fast on has one of its ports only.
	if c.Flags().Lookup("dry-run") == nil || slices.Contains(args, "--format") || c.Name() == "on" {
		return c.ParseFlags(rest)
	}
	if run(context.Background(), said, append(args, "--dry-run")) == exitUsage {
		return errors.New(out.String())
	}
	return nil
}

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
