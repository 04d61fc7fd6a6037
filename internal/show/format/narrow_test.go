package format

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/testing/documenttest"
)

func TestNarrowTables(t *testing.T) {
	head := func(a, b string, span int) document.Column {
		return document.Column{Head: [2]string{a, b}, Span: span}
	}
	wide := document.Table{Level: 1, Columns: []document.Column{
		head("", "mode", 0), head("", "path", 0), head("this machine, at", "127.0.0.1", 2),
		head("", "own", 0)},
		Rows: []document.Row{
			{Cells: document.Texts("bridge in Docker's words", "lo·bridge·veth·netfilter",
				"12.4 µs (12.1–12.6)", "34.5 µs (31.0–38.2)"),
				Note: "and a note that is longer than a line"},
			{Cells: document.Texts("host", "lo", "-", "")},
		}}
	d := document.Document{Sections: []document.Section{{Blocks: []document.Block{wide}}}}
	second := part(wide, 3, 4)
	if head := second.Columns[1].Head[0]; head != "this machine, at" {
		t.Errorf("above the first column of a part is %q", head)
	}
	for columns, want := range map[int]string{
		60: "                         this machine, at\n  mode       path        127.0.0.1   " +
			" own\n  bridge in  lo·bridge·  12.4 µs      34.5 µs\n  Docker's   veth·       " +
			"(12.1–12.6)  (31.0–38.2)\n  words      netfilter\n    and a note that is longer " +
			"than a line\n  host       lo          -\n",
		36: "  bridge in Docker's words\n    path: lo·bridge·veth·netfilter\n    this " +
			"machine, at 127.0.0.1:\n      12.4 µs (12.1–12.6)\n    this machine, at own: " +
			"34.5 µs\n      (31.0–38.2)\n    and a note that is longer than a\n      line\n  " +
			"host\n    path: lo\n    this machine, at 127.0.0.1: -\n",
	} {
		var b strings.Builder
		if err := writeTable(&b, d, Options{Width: columns}); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != want || len(documenttest.Misfits(d, got, columns)) > 0 {
			t.Errorf("%d columns: %q: %q, want %q", columns, documenttest.Misfits(d, got, columns),
				got, want)
		}
	}
}

func TestPieces(t *testing.T) {
	for text, want := range map[string]string{
		"took 12 µs, at least":             "took|12 µs,|at|least",
		"noise ± 1.5 % and 0.86 ±0.02 (x)": "noise|± 1.5 %|and|0.86 ±0.02|(x)",
		"8 × CPU · a fact":                 "8 × CPU ·|a|fact",
		"by lo·bridge·veth or lo":          "by|lo·|bridge·|veth|or|lo",
		"1.24 (1.20–1.28) worse":           "1.24 (1.20–1.28)|worse",
	} {
		var got []string
		for _, x := range pieces(text, document.Words) {
			got = append(got, x.text)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q, want %q", strings.Join(got, "|"), want)
		}
	}
}
