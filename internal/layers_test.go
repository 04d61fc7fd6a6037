// Package internal holds the test that keeps the layers of ARCHITECTURE.md apart.
package internal

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/bridgetoll/bridgetoll/internal/"

// table returns the rows of the table in ARCHITECTURE.md whose header begins with
// the given name, as cells without backquotes.
func table(t *testing.T, header string) [][]string {
	t.Helper()
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	in := false
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.ReplaceAll(strings.TrimSpace(line), "`", ""),
			"|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			in = false
		case cells[0] == header:
			in = true
		case in && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("ARCHITECTURE.md has no table %q", header)
	}
	return rows
}

// braces expands "a/{b,c}" to "a/b" and "a/c".
var braces = regexp.MustCompile(`^(.*)\{(.*)\}$`)

func expand(name string) []string {
	m := braces.FindStringSubmatch(name)
	if m == nil {
		return []string{name}
	}
	var out []string
	for x := range strings.SplitSeq(m[2], ",") {
		out = append(out, m[1]+x)
	}
	return out
}

// group is the folder of internal in which a package is.
func group(pkg string) string {
	g, _, _ := strings.Cut(pkg, "/")
	return g
}

// everything means the groups of the rows before.
const everything = "everything above"

// allowed are the groups that each group may import besides itself.
func allowed(t *testing.T) map[string][]string {
	t.Helper()
	may := map[string][]string{}
	var above []string
	for _, row := range table(t, "group") {
		may[row[0]] = nil
		if row[2] == everything {
			may[row[0]] = slices.Clone(above)
		}
		above = append(above, row[0])
		if row[2] != "nothing" && row[2] != everything {
			for g := range strings.SplitSeq(row[2], ",") {
				may[row[0]] = append(may[row[0]], strings.TrimSpace(g))
			}
		}
	}
	return may
}

// Groups import in one direction only, and may import nothing that they do not.
func TestGroups(t *testing.T) {
	may := allowed(t)
	used := map[[2]string]bool{}
	for pkg, imports := range packages(t) {
		for _, i := range imports {
			used[[2]string{group(pkg), group(i)}] = true
		}
	}
	for _, row := range table(t, "group") {
		for _, other := range may[row[0]] {
			if row[2] != everything && !used[[2]string{row[0], other}] {
				t.Errorf("ARCHITECTURE.md lets %s import %s, which it does not", row[0], other)
			}
		}
	}
	const entered, left = 1, 2
	state := map[string]int{}
	var follow func(g string, way []string)
	follow = func(g string, way []string) {
		if state[g] == entered {
			t.Errorf("groups import each other: %s", strings.Join(append(way, g), " → "))
		}
		if state[g] != 0 {
			return
		}
		state[g] = entered
		for _, other := range may[g] {
			follow(other, append(way, g))
		}
		state[g] = left
	}
	for g := range may {
		follow(g, nil)
	}
}

// The table of groups says which groups one may import besides itself; the table of
// packages lists every package of internal once.
func TestLayers(t *testing.T) {
	may := allowed(t)
	listed := map[string]bool{}
	for _, row := range table(t, "package") {
		for _, name := range expand(row[0]) {
			if listed[name] {
				t.Errorf("ARCHITECTURE.md lists %s twice", name)
			}
			listed[name] = true
		}
	}
	for pkg, imports := range packages(t) {
		if !listed[pkg] {
			t.Errorf("ARCHITECTURE.md does not list %s", pkg)
		}
		delete(listed, pkg)
		groups, known := may[group(pkg)]
		if !known {
			t.Errorf("ARCHITECTURE.md does not list the group of %s", pkg)
		}
		for _, i := range imports {
			if g := group(i); g != group(pkg) && !slices.Contains(groups, g) {
				t.Errorf("%s imports %s; its group may import %v", pkg, i, groups)
			}
		}
	}
	for pkg := range listed {
		t.Errorf("ARCHITECTURE.md lists %s, which does not exist", pkg)
	}
}

// Packages for tests are no part of toll.
func TestTollHasNoTests(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{.Imports}}`,
		"../cmd/toll").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(pkg, module) &&
			slices.Contains(strings.Fields(strings.Trim(imports, "[]")), "testing") {
			t.Errorf("toll needs %s, which is for tests", pkg)
		}
	}
}

// goList asks the go command once for all tests.
var goList = sync.OnceValues(func() ([]byte, error) {
	return exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
})

// packages returns those of internal, without this one, with what each imports of internal.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	out, err := goList()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		pkg, ok := strings.CutPrefix(p.ImportPath, module)
		if !ok {
			continue
		}
		all[pkg] = nil
		for _, i := range p.Imports {
			if ours, ok := strings.CutPrefix(i, module); ok {
				all[pkg] = append(all[pkg], ours)
			}
		}
	}
}
