package cli

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	machineLine = regexp.MustCompile(`^toll \S+ · Linux.*|^  lab: .*`)
	figure      = regexp.MustCompile(`\d[\d.,k]*`)
	verdicts    = regexp.MustCompile(`\b(better|worse|same|unclear)\b`)
	// which one is printed depends on the figures
	alike = strings.NewReplacer("-# +#", "±#", "(#–#)", "±#", "±?", "±#", "# round in",
		"# rounds in", "#× ", "# % ")
	took      = regexp.MustCompile(`\d+ ms`)
	tableHead = regexp.MustCompile(`^\S.* (→|from) \S.*[:,] `) // the line above a table of modes
)

// The figures decide whether a report has these sentences below its tables, and how a run ended.
var judging = []string{"The largest crowd", "delivers", "noise floor",
	"A price is what", "  Of ", "as many as asked for", "  The scheduler had",
	"  What costs nothing", "  The proxy takes"}

const (
	leftOut    = "…"
	headIndent = "               "
)

// shape keeps what does not depend on the machine: the question of an answer, the words of other
// sentences, and each table in one element, with a line for its title, each head and each row.
func shape(out string) []string {
	var parts []string
	rest := strings.Split(strings.TrimRight(out, "\n"), "\n")
	for len(rest) > 0 {
		l := rest[0]
		rest = rest[1:]
		if strings.HasPrefix(l, "Warnings") {
			break
		}
		if tableHead.MatchString(l) {
			end := slices.Index(append(rest, ""), "")
			parts = append(parts, strings.Join(append(
				[]string{took.ReplaceAllString(l, "# ms")}, tableShape(rest[:end])...), "\n"))
			if end > 0 && words(rest[end-1]) == leftOut { // of rows, or of all that follows
				parts = append(parts, leftOut)
			}
			rest = rest[end:]
			continue
		}
		if words(l) == leftOut {
			parts = append(parts, leftOut)
			continue
		}
		if strings.HasSuffix(l, "?") && !strings.HasPrefix(l, " ") {
			end := slices.Index(append(rest, ""), "")
			parts = append(parts, masked(l)) // without the findings, which show/sentence words
			if slices.ContainsFunc(rest[:end], func(l string) bool { return words(l) == leftOut }) {
				parts = append(parts, leftOut)
			}
			rest = rest[end:]
			continue
		}
		if l == "" {
			continue
		}
		if strings.HasPrefix(l, headIndent) { // the head of a further table of the same rows
			end := slices.Index(append(rest, ""), "")
			parts = append(parts, masked(l))
			units := len(parts) // below the head
			for _, row := range rest[:end] {
				parts = append(parts, masked(row))
			}
			sortRows(parts[min(units+1, len(parts)):])
			rest = rest[end:]
			continue
		}
		// where a sentence is broken depends on its width
		for len(rest) > 0 && strings.HasPrefix(rest[0], "    ") {
			l += " " + rest[0]
			rest = rest[1:]
		}
		if !machineLine.MatchString(l) &&
			!slices.ContainsFunc(judging, func(s string) bool {
				return strings.Contains(l, s)
			}) {
			parts = append(parts, masked(l))
		}
	}
	return parts
}

func masked(l string) string {
	return words(verdicts.ReplaceAllString(
		alike.Replace(figure.ReplaceAllString(l, "#")), "VERDICT"))
}

func words(l string) string { return strings.Join(strings.Fields(l), " ") }

// tableShape returns the shape of a table's lines. A path may be in the row or below it, depending
// on the width.
func tableShape(table []string) []string {
	if len(table) < 3 {
		return table
	}
	retr := slices.Contains(strings.Fields(table[1]), "retr")
	limited := slices.Contains(strings.Fields(table[0]), "limited")
	var rows []string
	for _, l := range table[2:] {
		if last := len(rows) - 1; last >= 0 && strings.HasPrefix(l, "    ") {
			rows[last] += " " + l
		} else {
			rows = append(rows, l)
		}
	}
	lines := []string{headShape(table[0]), headShape(table[1])}
	for _, r := range rows {
		if words(r) != leftOut {
			r = rowShape(r, retr, limited)
		}
		lines = append(lines, words(r))
	}
	sortRows(lines[2:])
	return lines
}

// sortRows undoes the order of what was measured, unless rows are left out in between.
func sortRows(rows []string) {
	if last := len(rows) - 1; last >= 0 && rows[last] == leftOut {
		rows = rows[:last]
	}
	if !slices.Contains(rows, leftOut) {
		slices.Sort(rows)
	}
}

// headShape removes the columns that are only printed if a row has a value for them. The unit of a
// time depends on how long it was.
func headShape(l string) string {
	l = words(strings.ReplaceAll(l, "limited", ""))
	l = timeUnit.ReplaceAllString(" "+strings.ReplaceAll(l, " ", "  ")+" ", " s ")
	l = strings.ReplaceAll(strings.ReplaceAll(" "+words(l)+" ", " retr ", " "), " path ", " ")
	return words(strings.ReplaceAll(l, " by ", " "))
}

var (
	timeUnit = regexp.MustCompile(` (µs|ms) `)
	number   = regexp.MustCompile(`^[-+]?\d[\d.]*(k|×)?$`) // a ratio is a factor from 10 on
	interval = regexp.MustCompile(`^±(\?|[\d.]+)$|^\([\d.]+–[\d.]+\)$`)
	limits   = []string{"client", "server", "proxy", "all", "cores", "both"}
)

// rowShape returns a row's names and path, followed by its figures: # is a number, none a dash, ±
// an interval around the number before it, VERDICT a verdict.
func rowShape(l string, retr, limited bool) string {
	var names, figures []string
	// a word for what limits the row was seen
	named := false
	// short where space is scarce
	fields := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(l, "≤ ", "0 ±"), "bridge", "br"))
	for i, w := range fields {
		low := i > 0 && strings.HasPrefix(w, "-") && number.MatchString(w) && i+1 < len(fields) &&
			strings.HasPrefix(fields[i+1], "+") && len(figures) > 0
		high := i > 0 && strings.HasPrefix(w, "+") && number.MatchString(w) && len(figures) > 0 &&
			figures[len(figures)-1] == "±-"
		switch {
		case w == "?" || w == "%":
		case low:
			figures = append(figures, "±-")
		case high:
			figures[len(figures)-1] = "±"
		case interval.MatchString(w):
			figures = append(figures, "±")
		case number.MatchString(w):
			figures = append(figures, "#")
		case limited && len(figures) > 0 && slices.Contains(limits, w):
			named = true
		case w == "-":
			figures = append(figures, "none")
		case verdicts.MatchString(w):
			figures = append(figures, "VERDICT")
		default:
			names = append(names, w)
		}
	}
	for i, f := range slices.Backward(figures) {
		if f == "none" && limited && !named { // the column of limits comes after those of figures
			figures, named = slices.Delete(figures, i, i+1), true
		}
	}
	if at := slices.IndexFunc(figures, func(f string) bool {
		return f == "#" || f == "none"
	}); retr && at >= 0 {
		figures = slices.Delete(figures, at, at+1)
	}
	return words(strings.Join(names, " ") + " | " + strings.Join(figures, " "))
}

func differs(want, got string) string {
	w, g := shape(want), shape(got)
	if sameParts(w, g) {
		return ""
	}
	return cmp.Diff(strings.Split(strings.Join(w, "\n"), "\n"),
		strings.Split(strings.Join(g, "\n"), "\n"))
}

// sameParts compares an example with an output. A cut in the example matches any number of parts,
// and the rest of the part before it.
func sameParts(want, got []string) bool {
	for i, w := range want {
		if w == leftOut {
			return endsWith(want[i+1:], got[i:])
		}
		if i == len(got) {
			return false
		}
		begun := slices.Contains(want[i+1:min(i+2, len(want))], leftOut) &&
			strings.HasPrefix(got[i], w)
		if w != got[i] && !begun && !sameTable(strings.Split(w, "\n"),
			strings.Split(got[i], "\n")) {
			return false
		}
	}
	return len(want) == len(got)
}

func endsWith(want, got []string) bool {
	for from := range len(got) + 1 {
		if sameParts(want, got[from:]) {
			return true
		}
	}
	return false
}

const heads = 3

// sameTable accepts rows in any order, because figures determine it. Rows may be missing where the
// first table has a cut.
func sameTable(want, got []string) bool {
	if len(want) < heads || len(got) < heads || !slices.Equal(want[:heads], got[:heads]) {
		return false
	}
	left := slices.Clone(got[heads:])
	for _, w := range want[heads:] {
		at := slices.IndexFunc(left, func(g string) bool {
			return g == w || covers(g, w) || covers(w, g)
		})
		switch {
		case at >= 0:
			left = slices.Delete(left, at, at+1)
		case w != leftOut:
			return false
		}
	}
	return len(left) == 0 || slices.Contains(want, leftOut)
}

// covers reports whether the rows differ at most by figures that only the second has.
func covers(lacks, row string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(
		regexp.QuoteMeta(lacks), "none", "(none|#)( ±( VERDICT)?)?") + "$").MatchString(row)
}

// recut leaves out of an output what an example leaves out. Lines are matched by their words. It
// returns the whole output if that has few of the example's lines.
func recut(example, out string) string {
	rest := strings.SplitAfter(out, "\n")
	key := func(l string) string {
		all := masked(l)
		if !strings.HasPrefix(l, " ") {
			return all
		}
		before, _, figure := strings.Cut(all, "#")
		return fmt.Sprint(before, figure)
	}
	var kept strings.Builder
	skip, lost := false, 0
	for line := range strings.Lines(example) {
		if words(line) == leftOut {
			kept.WriteString(line)
			skip = true
			continue
		}
		at := slices.IndexFunc(rest, func(l string) bool { return key(l) == key(line) })
		if at < 0 {
			lost++
			continue
		}
		if skip {
			rest, at, skip = rest[at:], 0, false
		}
		kept.WriteString(strings.Join(rest[:at+1], ""))
		rest = rest[at+1:]
	}
	if !skip {
		kept.WriteString(strings.Join(rest, ""))
	}
	if 2*lost > strings.Count(example, "\n") {
		return out
	}
	return kept.String()
}

// The test damages an example as a table could go wrong. Damage must be found; other figures and
// another width must not be reported.
func TestShape(t *testing.T) {
	text, err := os.ReadFile("testdata/manual/compare.txt") // an earlier example of the manual
	if err != nil {
		t.Fatal(err)
	}
	example := string(text)
	for _, tt := range []struct {
		name, old, new string
		found          bool
	}{
		{"as-it-is", "", "", false},
		{"other-figure", "0.82 ±0.01", "0.91 (0.88–0.95)", false},
		{"factor", "0.88 ±0.01 worse", "11× (9–13) better", false},
		{"no-figure", "28.0 client  0.88", "   - -       0.88", false},
		{"no-ratio", "0.88 ±0.01 worse", "-", false},
		{"one-round", "8 rounds in", "1 round in", false},
		{"other-advice", "Keep bridge", "Avoid bridge", false},
		{"other-verdict", "worse\n", "unclear\n", false},
		{"removed-head", "  s/GB", "      ", true},
		{"swapped-heads", "Gbit/s  s/GB", "s/GB  Gbit/s", true},
		{"other-unit", "Gbit/s  s/GB", "Mbit/s  s/GB", true},
		{"other-unit-of-latency", "µs  µs    µs  /trip", "ms  µs    µs  /trip", false},
		{"removed-figure", "58.0 116   209", "58.0   209", true},
		{"removed-interval", "0.88 ±0.01 worse", "0.88 worse", true},
		{"unknown-verdict", "0.88 ±0.01 worse", "0.88 ±0.01 slower", true},
		{"removed-verdict", "0.88 ±0.01 worse", "0.88 ±0.01", true},
		{"verdict-before-its-interval", "0.88 ±0.01 worse", "worse 0.88 ±0.01", true},
		{"other-path", "DNAT·MASQ·br·veth", "MASQ·br·veth", true},
		{"removed-row", "  host              lo                  53.6 0.270   29.6 client  1\n", "",
			true},
		{"other-title", "bulk, 1 stream", "bulk, 2 streams", true},
		{"baseline", "to host", "to native", true},
		{"sentence", "Every row was witnessed", "Most rows were witnessed", true},
		{"removed-sentence", "  The proxy is docker-proxy.\n", "", true},
		{"removed-question", "Which network mode, by throughput and median latency?\n", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changed := strings.Replace(example, tt.old, tt.new, 1)
			if tt.old != tt.new && changed == example {
				t.Fatalf("the example has no %q", tt.old)
			}
			if got := differs(example, changed); got != "" != tt.found {
				t.Errorf("-want +got:\n%s", got)
			}
			if got := differs(changed, example); got != "" != tt.found &&
				!strings.Contains(changed, leftOut) {
				t.Errorf("the other way: -want +got:\n%s", got)
			}
		})
	}
}

func TestShapeOfCut(t *testing.T) {
	text, err := os.ReadFile("testdata/manual/compare.txt")
	if err != nil {
		t.Fatal(err)
	}
	whole := string(text)
	lines := strings.Split(whole, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  bridge ") })
	row := strings.Join(slices.Replace(slices.Clone(lines), at, at+1, leftOut), "\n")
	table := strings.Join(slices.Replace(slices.Clone(lines), at-4, at+4, leftOut), "\n")
	end := strings.Join(append(slices.Clone(lines[:at-5]), leftOut), "\n")
	tail := strings.Join(append(slices.Clone(lines[:at+1]), leftOut), "\n")
	for name, example := range map[string]string{"whole": whole, "row": row, "table": table,
		"end": end, "tail": tail} {
		if got := differs(example, whole); got != "" {
			t.Errorf("%s: -want +got:\n%s", name, got)
		}
		if got := recut(example, whole); got != example {
			t.Errorf("%s: cut anew: -want +got:\n%s", name, cmp.Diff(example, got))
		}
		if got := differs(strings.Replace(example, leftOut, "", 1), whole); got == "" &&
			name != "whole" {
			t.Errorf("%s: without the cut it is no different", name)
		}
		if got := differs(example, strings.Replace(whole, "The proxy is docker-proxy", "It is new", 1)); got == "" && name != "end" && name != "tail" {
			t.Errorf("%s: a cut hides what is after it", name)
		}
	}
}

func TestRecutOfAnother(t *testing.T) {
	const example = "…\nFrom here, rr\n  mode path µs\n  host lo 1\n  bridge veth 2\n  " +
		"routed veth 3\n…\n"
	const out = "Which mode?\n\nFrom here, rr\n  mode µs\n  host 1\n    lo\n  bridge 2\n    " +
		"veth\n\n  Witnessed.\n"
	if got := recut(example, out); got != out {
		t.Errorf("kept\n%s", got)
	}
}
