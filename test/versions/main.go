// Command versions merges notes of tests about the foreign programs that they ran into the ledger
// of docs/versions.md. What a reader must know about a program's versions is written there by hand,
// and kept.
//
//	versions NOTES PAGE
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// row is a program in the ledger.
type row struct {
	program        string
	oldest, newest ran
	what           []string
	changed        string // written by hand
}

// ran is a version, and the day on which it was last run.
type ran struct{ version, day string }

func (r ran) String() string { return r.version + " (" + r.day + ")" }

const head = "| program | oldest | newest | what was run | what changed between them " +
	"|\n|---|---|---|---|---|\n"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: versions NOTES PAGE")
		os.Exit(2)
	}
	if err := merge(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func merge(notes, page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, table, found := strings.Cut(string(text), head)
	if !found {
		return fmt.Errorf("%s has no ledger", page)
	}
	var rows []row
	rest := table
	for strings.HasPrefix(rest, "|") {
		line, after, _ := strings.Cut(rest, "\n")
		r, err := parse(line)
		if err != nil {
			return err
		}
		rows, rest = append(rows, r), after
	}
	f, err := os.Open(notes)
	if err != nil {
		return err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		part := strings.Split(s.Text(), "\t")
		if len(part) != 4 {
			return fmt.Errorf("not a note: %q", s.Text())
		}
		rows = add(rows, part[1], ran{part[2], part[0]}, part[3])
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Compare(strings.ToLower(a.program), strings.ToLower(b.program))
	})
	var out strings.Builder
	out.WriteString(before + head)
	for _, r := range rows {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", r.program, r.oldest, r.newest,
			strings.Join(r.what, ", "), r.changed)
	}
	return os.WriteFile(page, []byte(out.String()+rest), 0o644)
}

var cell = regexp.MustCompile(`^(\S+) \((\d{4}-\d\d-\d\d)\)$`)

func parse(line string) (row, error) {
	part := strings.Split(strings.Trim(line, "|"), "|")
	for i := range part {
		part[i] = strings.TrimSpace(part[i])
	}
	if len(part) != 5 {
		return row{}, fmt.Errorf("not a row: %q", line)
	}
	oldest, newest := cell.FindStringSubmatch(part[1]), cell.FindStringSubmatch(part[2])
	if oldest == nil || newest == nil {
		return row{}, fmt.Errorf("no version and day: %q", line)
	}
	return row{part[0], ran{oldest[1], oldest[2]}, ran{newest[1], newest[2]},
		strings.Split(part[3], ", "), part[4]}, nil
}

func add(rows []row, program string, r ran, what string) []row {
	i := slices.IndexFunc(rows, func(x row) bool { return x.program == program })
	if i < 0 {
		return append(rows, row{program: program, oldest: r, newest: r, what: []string{what}})
	}
	x := &rows[i]
	for _, at := range []struct {
		of   *ran
		sign int
	}{{&x.oldest, -1}, {&x.newest, 1}} {
		switch c := compare(r.version, at.of.version); {
		case c*at.sign > 0:
			*at.of = r
		case r.version == at.of.version:
			at.of.day = max(at.of.day, r.day)
		}
	}
	if !slices.Contains(x.what, what) {
		x.what = append(x.what, what)
		slices.Sort(x.what)
	}
	return rows
}

var digits = regexp.MustCompile(`\d+`)

// compare compares versions by their numbers, from left to right.
func compare(a, b string) int {
	return slices.CompareFunc(digits.FindAllString(a, -1), digits.FindAllString(b, -1),
		func(a, b string) int {
			m, _ := strconv.Atoi(a)
			n, _ := strconv.Atoi(b)
			return cmp.Compare(m, n)
		})
}
