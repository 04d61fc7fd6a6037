package explain

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/heads"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

func finds(t *testing.T, what, word string) {
	t.Helper()
	if _, err := Find(word); err != nil {
		t.Errorf("the %s %q is explained nowhere: add it to words.txt, or to its catalogue", what,
			word)
	}
}

func TestEverythingIsExplained(t *testing.T) {
	for _, v := range []stats.Verdict{stats.Better, stats.Worse, stats.Same, stats.Unclear} {
		finds(t, "verdict", string(v))
	}
	for _, n := range mode.Names() {
		finds(t, "mode", string(n))
	}
	for _, p := range mode.Placements() {
		finds(t, "placement", string(p))
	}
	for _, to := range slices.DeleteFunc(mode.Targets(), func(to mode.Target) bool {
		return to == mode.ToContainer
	}) {
		finds(t, "target", string(to))
		finds(t, "target", to.Short())
	}
	for _, w := range workload.All() {
		finds(t, "load", w.Name)
		for _, c := range heads.All(w) {
			finds(t, "column", c.Title())
		}
	}
	for _, w := range []string{"witness", "noise floor", "slices", "epoch", "visit", "baseline",
		"control", "ratio", "path", "mode", "added"} {
		finds(t, "word", w)
	}
}

func sources(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("../..", dir),
		func(name string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") ||
				strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(name)
			out = append(out, string(text))
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWarningsAreExplained(t *testing.T) {
	n := 0
	for dir, head := range map[string]string{"judge/analysis": "// The codes of warnings.",
		"record/workload": "// The codes of doubts."} {
		for _, text := range sources(t, dir) {
			_, list, _ := strings.Cut(text, head)
			list, _, _ = strings.Cut(list, "\n)")
			for _, m := range regexp.MustCompile(`= "([a-z-]+)"`).FindAllStringSubmatch(list, -1) {
				finds(t, "warning", m[1])
				n++
			}
		}
	}
	for _, code := range []string{analysis.Busy, analysis.Varying, analysis.DoubtfulRoutes} {
		finds(t, "warning", code)
		n++
	}
	if n < 30 {
		t.Errorf("%d codes were found", n)
	}
}

func scanned(t *testing.T, pattern string, least int, dirs ...string) (out []string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for _, dir := range dirs {
		for _, text := range sources(t, dir) {
			for _, m := range re.FindAllStringSubmatch(text, -1) {
				// joins "con-", "tainer"
				word := strings.ReplaceAll(strings.Join(m[1:], " "), "- ", "")
				if word = strings.TrimSpace(word); word != "" {
					out = append(out, word)
				}
			}
		}
	}
	if len(out) < least {
		t.Errorf("%d words match %s", len(out), pattern)
	}
	return out
}

func TestWordsOfTheOutputAreExplained(t *testing.T) {
	for _, x := range []struct {
		what, pattern string
		least         int
		dirs          []string
	}{
		{"column", `(?:texts|figures|col|much|Head: \[2\]string)[({]"([^"]*)", "([^"]*)"[,)}]`, 90,
			[]string{"show"}},
		{"trap", `(?m)^\t\w+ += "([a-z0-9]+-[a-z0-9-]+)"$`, 17, []string{"reach/ports"}},
		{"route", `PathKind = "(\w+)"`, 8, []string{"reach/ports"}},
		{"verdict", `(?:Verdict|Outcome|Band) = "([^"]+)"`, 30,
			[]string{"judge/advise", "judge/analysis", "judge/gate", "judge/published",
				"judge/stats"}},
		{"hop", `HopKind = "([\w-]+)"`, 22, []string{"record/mode"}},
	} {
		for _, word := range scanned(t, x.pattern, x.least, x.dirs...) {
			finds(t, x.what, word)
		}
	}
}

func goldens(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../view/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var out []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

func TestWordsOfTheGoldenOutputs(t *testing.T) {
	found := map[string]bool{}
	row := regexp.MustCompile(`(?m)[0-9)] +([a-z]+)$`)
	trap := regexp.MustCompile(`(?m)^  ([a-z0-9]+-[a-z0-9-]+) \d+/(?:tcp|udp)`)
	table := regexp.MustCompile(`(?m)^ .*\bverdict$(?:\n  .*)+`)
	for _, text := range goldens(t) {
		for _, rows := range table.FindAllString(text, -1) {
			for _, m := range row.FindAllStringSubmatch(rows, -1) {
				found[m[1]] = true
			}
		}
		for _, m := range trap.FindAllStringSubmatch(text, -1) {
			found[m[1]] = true
		}
	}
	if len(found) < 6 {
		t.Errorf("the words are %v", found)
	}
	for word := range found {
		finds(t, "word", word)
	}
}

func TestWordsOfTheFirstScreens(t *testing.T) {
	const words = "-p,-P,EXPOSE,--expose,NAT,DNAT,masquerade,userland-proxy,docker-proxy,latency," +
		"median latency,throughput,held,published,direct,blocked,hairpin,shortcut,in " +
		"Docker's words," +
		"% of host,own CPUs,one CPU,added,verdict,baseline,control,noise " +
		"floor,seed,budget,--budget," +
		"--pin,round,lab,lever,rung,part,trap,route,node,endpoint,knee,shape,policy,lose,gain,itself," +
		"not known,perhaps,as captured,other suspects,delayed acknowledgements,CPU " +
		"pressure,load average," +
		"median page time,% of direct,relays,mode,modes,suspect,no certain difference,added ms,last"
	for word := range strings.SplitSeq(words, ",") {
		finds(t, "word", word)
	}
	for _, word := range []string{"change, % (95 %)", "largest packet, B",
		"this machine, at 127.0.0.1"} {
		finds(t, "head", word)
	}
	p, _ := Find("-p")
	all, _ := Find("-P")
	if len(p) != 1 || len(all) != 1 || p[0].Name == all[0].Name {
		t.Errorf("-p is %v, -P is %v", p, all)
	}
}

func TestShort(t *testing.T) {
	const lines, columns = 12, 76
	for _, e := range All() {
		n := 1
		for _, p := range e.Text {
			n += (len([]rune(p)) + columns - 1) / columns
		}
		if len(e.Text) == 0 || n > lines {
			t.Errorf("%s %s has %d lines: %q", e.Group, e.Name, n, e.Text)
		}
		for _, p := range e.Text {
			if p == "" || strings.Join(strings.Fields(p), " ") != p {
				t.Errorf("%s: %q", e.Name, p)
			}
		}
	}
}

func TestFind(t *testing.T) {
	for word, groups := range map[string]string{
		"host":         "Where it is measured, Modes",
		"HOST":         "Where it is measured, Modes",
		"p99.9":        "Metrics",
		"latency_p999": "Metrics",
		"CPU µs /trip": "Metrics",
		"noise floor":  "How it is measured",
		"bulk":         "Loads",
		"few-rounds":   "Warnings",
	} {
		found, err := Find(word)
		var got []string
		for _, e := range found {
			got = append(got, e.Group)
		}
		if err != nil || strings.Join(got, ", ") != groups {
			t.Errorf("%s: %q, %v", word, got, err)
		}
	}
	var unknown *suggest.UnknownError
	if _, err := Find("beter"); !errors.As(err, &unknown) ||
		unknown.Hint() != "did you mean better?" {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("# A\n= b, c\ntext\n")
	f.Add("= \n# \n=")
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range parse(text) {
			_ = e.Title()
		}
	})
}
