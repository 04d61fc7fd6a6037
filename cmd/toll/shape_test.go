package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The parts of an example's output that depend on the machine.
var (
	machineLine = regexp.MustCompile(`^toll \S+ · Linux.*|^  lab: .*`)
	figure      = regexp.MustCompile(`\d[\d.,k]*`)
	verdicts    = regexp.MustCompile(`\b(better|worse|same|unclear)\b`)
	alike       = strings.NewReplacer("-# +#", "±#", "(#–#)", "±#", "±?", "±#", "# round in", "# rounds in") // which one is printed depends on the figures
	took        = regexp.MustCompile(`\d+ ms`)
	tableHead   = regexp.MustCompile(`^\S.* (→|from) \S.*[:,] `) // the line above a table of modes
)

// judging lists texts of sentences that say what the figures mean. Whether they are printed depends
// on the figures.
var judging = []string{"port isolation", "Publishing", "delivers", "largest crowd", "noise floor", "Ratios are of",
	"A price is what", "measurable", "From host the machine", "times bridge's median", "Median latency: ", "Throughput, of that", "Total throughput at", " unclear; ", " are unclear, ", " verdict is unclear", "as many as asked for", " verdicts is unclear", "container: ", "  Keep ", "  Avoid ", "  Not certain yet", "  The machine was too busy", "  The scheduler had",
	"  What costs nothing", "  The proxy takes", "  machine A:", "  Of "}

// shape reduces output to what does not depend on the machine: the words of sentences, and the
// title, columns, units and rows of each table. A line "…" marks a cut of the manual.
func shape(out string) []string {
	var lines []string
	rest := strings.Split(out, "\n")
	for len(rest) > 0 {
		l := rest[0]
		rest = rest[1:]
		switch {
		case strings.HasPrefix(l, "Warnings"):
			return lines
		case tableHead.MatchString(l):
			end := slices.Index(append(rest, ""), "")
			lines = append(lines, "title: "+took.ReplaceAllString(l, "# ms"))
			lines = append(lines, tableShape(rest[:end])...)
			rest = rest[end:]
		case l == "", l == "…", machineLine.MatchString(l), strings.HasPrefix(l, "    "), // line breaks in a sentence depend on its width
			slices.ContainsFunc(judging, func(s string) bool { return strings.Contains(l, s) }):
		default:
			lines = append(lines, words(verdicts.ReplaceAllString(alike.Replace(figure.ReplaceAllString(l, "#")), "VERDICT")))
		}
	}
	return lines
}

func words(l string) string { return strings.Join(strings.Fields(l), " ") }

// tableShape returns a table's two head lines and its rows. Depending on the width, a path stands
// in the row or below it.
func tableShape(table []string) []string {
	if len(table) < 3 {
		return table
	}
	retr, limited := strings.Contains(table[1], " retr"), strings.Contains(table[0], " limited")
	var rows []string
	for _, l := range table[2:] {
		if last := len(rows) - 1; last >= 0 && strings.HasPrefix(l, "    ") {
			rows[last] += " " + l
		} else {
			rows = append(rows, l)
		}
	}
	lines := []string{"heads: " + headShape(table[0]), "heads: " + headShape(table[1])}
	for _, r := range rows {
		lines = append(lines, "row: "+rowShape(r, retr, limited))
	}
	return lines
}

// headShape removes the columns that are only printed if a row has a value for them.
func headShape(l string) string {
	l = words(strings.ReplaceAll(l, "limited", ""))
	l = strings.ReplaceAll(strings.ReplaceAll(" "+l+" ", " retr ", " "), " path ", " ")
	return words(strings.ReplaceAll(l, " by ", " "))
}

var (
	number   = regexp.MustCompile(`^[-+]?\d[\d.]*k?$`)
	interval = regexp.MustCompile(`^±(\?|[\d.]+)$|^\([\d.]+–[\d.]+\)$`)
	limits   = []string{"client", "server", "proxy", "all", "cores", "both"}
)

// rowShape returns a row's names and path, followed by its figures: # is a number, none a dash, ±
// an interval around the number before it, VERDICT a verdict.
func rowShape(l string, retr, limited bool) string {
	var names, figures []string
	named := false                                                                                   // a word for what limits the row was seen
	fields := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(l, "≤ ", "0 ±"), "bridge", "br")) // short where space is scarce
	for i, w := range fields {
		low := i > 0 && strings.HasPrefix(w, "-") && number.MatchString(w) && i+1 < len(fields) && strings.HasPrefix(fields[i+1], "+") && len(figures) > 0
		high := i > 0 && strings.HasPrefix(w, "+") && number.MatchString(w) && len(figures) > 0 && figures[len(figures)-1] == "±-"
		switch {
		case w == "?":
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
	if at := slices.IndexFunc(figures, func(f string) bool { return f == "#" || f == "none" }); retr && at >= 0 {
		figures = slices.Delete(figures, at, at+1)
	}
	return words(strings.Join(names, " ") + " | " + strings.Join(figures, " "))
}

// missing returns the lines of the manual's shape that the output lacks. A line that occurs twice
// must occur twice there, too. The order of lines does not matter, because figures decide the order
// of rows.
func missing(want, got string) []string {
	left := shape(got)
	var out []string
	for _, l := range shape(want) {
		at := slices.IndexFunc(left, func(g string) bool { return g == l || covers(g, l) || covers(l, g) || begins(g, l) || begins(l, g) })
		if at < 0 {
			out = append(out, l)
			continue
		}
		left = slices.Delete(left, at, at+1)
	}
	return out
}

// begins reports whether a sentence's first line, broken, is the beginning of another sentence.
// Figures decide where a sentence is broken.
func begins(broken, sentence string) bool {
	const enough = 40 // characters, of a line's 80 to 100
	part := slices.ContainsFunc([]string{"title: ", "heads: ", "row: "}, func(of string) bool { return strings.HasPrefix(sentence, of) })
	return !part && len(broken) >= enough && strings.HasPrefix(sentence, broken)
}

// covers reports whether two rows are alike except that the first lacks figures that the second may
// have, with or without an interval.
func covers(lacks, row string) bool {
	if !strings.HasPrefix(lacks, "row: ") || !strings.Contains(lacks, "none") {
		return false
	}
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(lacks), "none", "(none|#)( ±( VERDICT)?)?") + "$").MatchString(row)
}

// TestShape damages an example of the manual as a table could go wrong. Damage must be found; other
// figures and another width must not be reported.
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
		{"no-figure", "28.0 client  0.88", "   - -       0.88", false},
		{"no-ratio", "0.88 ±0.01 worse", "-", false},
		{"one-round", "8 rounds in", "1 round in", false},
		{"other-advice", "Keep bridge", "Avoid bridge", false},
		{"other-verdict", "worse\n", "unclear\n", false},
		{"removed-head", "  s/GB", "      ", true},
		{"swapped-heads", "Gbit/s  s/GB", "s/GB  Gbit/s", true},
		{"other-unit", "Gbit/s  s/GB", "Mbit/s  s/GB", true},
		{"other-unit-of-latency", "µs  µs    µs  /trip", "ms  µs    µs  /trip", true},
		{"removed-figure", "58.0 116   209", "58.0   209", true},
		{"removed-interval", "0.88 ±0.01 worse", "0.88 worse", true},
		{"unknown-verdict", "0.88 ±0.01 worse", "0.88 ±0.01 slower", true},
		{"removed-verdict", "0.88 ±0.01 worse", "0.88 ±0.01", true},
		{"verdict-before-its-interval", "0.88 ±0.01 worse", "worse 0.88 ±0.01", true},
		{"other-path", "DNAT·MASQ·br·veth", "MASQ·br·veth", true},
		{"removed-row", "  host              lo                  53.6 0.270   29.6 client  1\n", "", true},
		{"other-title", "bulk, 1 stream", "bulk, 2 streams", true},
		{"baseline", "to host", "to native", true},
		{"sentence", "Every row was witnessed", "Most rows were witnessed", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changed := strings.Replace(example, tt.old, tt.new, 1)
			if tt.old != tt.new && changed == example {
				t.Fatalf("the example has no %q", tt.old)
			}
			if got := missing(example, changed); len(got) > 0 != tt.found {
				t.Errorf("missing: %q", got)
			}
		})
	}
}
