package printable

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestLineTextWords(t *testing.T) {
	for _, c := range []struct{ name, in, line, text, words string }{
		{"plain", "plain", "plain", "plain", "plain"},
		{"scripts", "é 漢字 שלום مرحبا 🙂 \U0001f44d\U0001f3fd ☂️",
			"é 漢字 שלום مرحبا 🙂 \U0001f44d\U0001f3fd ☂️",
			"é 漢字 שלום مرحبا 🙂 \U0001f44d\U0001f3fd ☂️",
			"é 漢字 שלום مرحبا 🙂 \U0001f44d\U0001f3fd ☂️"},
		{"combined", "e\u0301", "e\u0301", "e\u0301", "e\u0301"},
		{"lines", "a\n\tb\r\nc\rd", `a\n\tb\r\nc\rd`, "a\n\tb\nc\\rd", "a b c d"},
		{"escape", "\x1b[31mred\x1b]0;title\a", `\x1b[31mred\x1b]0;title\a`,
			`\x1b[31mred\x1b]0;title\a`, `\x1b[31mred\x1b]0;title\a`},
		{"c1", "\u009b31m\u0090x\u009c", `\u009b31m\u0090x\u009c`, `\u009b31m\u0090x\u009c`,
			`\u009b31m\u0090x\u009c`},
		{"zero-and-delete", "\x00\x7f", `\x00\x7f`, `\x00\x7f`, `\x00\x7f`},
		{"bidi", "a\u202eb\u2066c\u2069\u061c", `a\u202eb\u2066c\u2069\u061c`,
			`a\u202eb\u2066c\u2069\u061c`, `a\u202eb\u2066c\u2069\u061c`},
		{"no-width", "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad",
			`\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad`,
			`\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad`,
			`\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad`},
		{"separators", "a\u2028b\u2029c\u0085d", `a\u2028b\u2029c\u0085d`, `a\u2028b\u2029c\u0085d`,
			"a b c d"},
		{"tags", "\U000e0041", `\U000e0041`, `\U000e0041`, `\U000e0041`},
		{"no-utf-8", "caf\xe9 \xed\xa0\x80", `caf\xe9 \xed\xa0\x80`, `caf\xe9 \xed\xa0\x80`,
			`caf\xe9 \xed\xa0\x80`},
		{"replaced-before", "\ufffd", "\ufffd", "\ufffd", "\ufffd"},
		{"backslash", `C:\x1b`, `C:\x1b`, `C:\x1b`, `C:\x1b`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Line(c.in); got != c.line {
				t.Errorf("Line = %q, want %q", got, c.line)
			}
			if got := Text(c.in); got != c.text {
				t.Errorf("Text = %q, want %q", got, c.text)
			}
			if got := Words(c.in); got != c.words {
				t.Errorf("Words = %q, want %q", got, c.words)
			}
		})
	}
}

func TestLimitStartEnd(t *testing.T) {
	for _, c := range []struct {
		in                string
		most              int
		limit, start, end string
	}{
		{"", 0, "", "", ""},
		{"abc", 0, "", "…", "…"},
		{"abc", 3, "abc", "abc", "abc"},
		{"abcd", 3, "abc", "abc…", "…bcd"},
		{"éèà", 2, "éè", "éè…", "…à"},
		{"éèà", 3, "éèà", "éèà", "…à"}, // of two bytes each
		{"a\xff", 1, "a", "a…", "…\xff"},
		{"a\x80", 1, "a", "a…", "…"},
	} {
		if got := [3]string{Limit(c.in, c.most), Start(c.in, c.most), End(c.in, c.most)}; got != [3]string{c.limit, c.start, c.end} {
			t.Errorf("%q, %d: got %q", c.in, c.most, got)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\x1b\u202e\xff\n")
	f.Fuzz(func(t *testing.T, s string) {
		got := Line(s)
		for _, r := range got {
			if !unicode.IsGraphic(r) {
				t.Fatalf("%q holds %U", got, r)
			}
		}
		if !utf8.ValidString(got) || Line(got) != got || Text(Text(s)) != Text(s) {
			t.Fatalf("%q of %q", got, s)
		}
	})
}

type inner struct {
	Name   string
	Lines  string `printable:"text"`
	hidden string
}

func TestFields(t *testing.T) {
	type outer struct {
		inner
		One   inner
		Other *inner
		None  *inner
		List  []string
		Many  []inner
		Facts map[string]string
		Deep  map[string][]string
		Any   any
		N     int
	}
	const bad = "a\n\x1b"
	in := inner{bad, bad, bad}
	x := outer{One: in, Other: &inner{bad, bad, bad}, List: []string{bad}, Many: []inner{in},
		Facts: map[string]string{bad: bad, "b": "c"}, Deep: map[string][]string{"k": {bad}}, N: 3}
	Fields(&x)
	const line, text = `a\n\x1b`, "a\n" + `\x1b`
	out := inner{line, text, bad}
	want := outer{One: out, Other: &out, List: []string{line}, Many: []inner{out},
		Facts: map[string]string{line: line, "b": "c"}, Deep: map[string][]string{"k": {line}},
		N: 3}
	if d := cmp.Diff(want, x, cmp.AllowUnexported(outer{}, inner{})); d != "" {
		t.Error(d)
	}
	texts := struct {
		M map[string]string `printable:"text"`
	}{map[string]string{"a": bad}}
	if Fields(&texts); texts.M["a"] != text {
		t.Errorf("%q", texts.M)
	}
}

// No text that Plain accepts has anything to escape.
func TestPlain(t *testing.T) {
	for json, want := range map[string]bool{
		`{"a":"b c~"}`: true, `{"a":"\u001b"}`: false, `{"a":"\n"}`: false,
		"{\"a\":\"\u202e\"}": false, "{\"a\":\"\x7f\"}": false, "{\"a\":\"\xff\"}": false,
	} {
		if got := Plain([]byte(json)); got != want {
			t.Errorf("Plain(%q) = %t", json, got)
		}
	}
}

func TestCapital(t *testing.T) {
	for in, want := range map[string]string{"": "", "a": "A", "median latency": "Median latency",
		"éa": "Éa", "漢": "漢"} {
		if got := Capital(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
