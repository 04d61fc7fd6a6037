package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/build/path/pathtest"
)

var update = flag.Bool("update", false, "write the manual's output anew")

const manual = "../../docs/manual.md"

var example = regexp.MustCompile("(?ms)^```console\n\\$ (toll[^\n]*)\n(.*?)^```$")

// TestManual runs every `$ toll …` example of the manual, for fewer rounds than it
// says. The output must have the manual's shape; figures, which verdict it is and the
// order of rows are the machine's.
func TestManual(t *testing.T) {
	if !mayBuild() {
		pathtest.SkipOrFail(t, "network namespaces need root here")
	}
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	bin := binary(t)
	examples := example.FindAllStringSubmatch(string(text), -1)
	if len(examples) < 5 {
		t.Fatalf("only %d examples", len(examples))
	}
	for _, e := range examples {
		args := strings.Fields(e[1])[1:]
		if at := slices.Index(args, "--rounds") + 1; at > 0 && !*update {
			args[at] = "2" // more only make numbers and verdicts surer, which are not compared
			args = append(args, "--window", "100ms")
		}
		r, code := runPatiently(t, bin, nil, args...)
		out := r.out.String()
		if code != exitOK || r.errOut.Len() > 0 {
			t.Errorf("%s: exit code %d, %s", e[1], code, r.errOut.String())
		}
		if *update {
			text = bytes.Replace(text, []byte(e[0]), []byte("```console\n$ "+e[1]+"\n"+out+"```"), 1)
			continue
		}
		for _, l := range missing(e[2], out) {
			t.Errorf("%s: the manual's line %q is not in the output:\n%s\nwhich is:\n%s", e[1], l, out, strings.Join(shape(out), "\n"))
		}
	}
	if *update {
		if err := os.WriteFile(manual, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The manual's tables of flags must be those of the commands.
func TestManualNamesEveryFlag(t *testing.T) {
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, c := range []string{"compare", "scale", "run", "stream", "sql", "ports"} {
		if code := run(context.Background(), env{&out, &out}, []string{c, "--help"}); code != exitOK {
			t.Fatal(out.String())
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\s+(?:-\w, )?(--[a-z-]+)`).FindAllStringSubmatch(out.String(), -1) {
		if m[1] != "--help" && m[1] != "--on" && !strings.Contains(string(text), m[1]) {
			t.Errorf("the manual does not name %s", m[1])
		}
	}
}
