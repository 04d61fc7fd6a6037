package suggest

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

var modes = []string{"native", "host", "shared", "bridge", "bridge-default", "publish-nat",
	"publish-proxy", "publish-ingress",
	"link", "macvlan-bridge", "macvlan-vepa", "ipvlan-l2", "ipvlan-l3", "ovs", "overlay",
	"overlay-encrypted"}

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		word string
		want string // joined by spaces
	}{
		{"brige", "bridge"},
		{"brigde", "bridge"},
		{"Bridge", "bridge"},
		{" BRIDGE ", "bridge"},
		{"bridges", "bridge"},
		{"hots", "host"},
		{"overlya", "overlay"},
		{"publish-nta", "publish-nat"},
		{"publish", "publish-nat publish-proxy publish-ingress"},
		{"overlay-", "overlay overlay-encrypted"},
		{"macvlan", "macvlan-vepa macvlan-bridge"},
		{"ov", "ovs overlay overlay-encrypted"},
		{"o", ""},
		{"", ""},
		{"moon", ""},
		{"b", ""},
		{"now", ""},
		{strings.Repeat("bridge", 1000), ""},
	} {
		if got := strings.Join(Words(tt.word, modes), " "); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.word, got, tt.want)
		}
	}
}

func TestSlips(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1},
		{"ab", "ba", 1},
		{"abc", "ab", 1}, {"abc", "abcd", 1}, {"abc", "axc", 1}, {"ca", "abc", 3}, {"µs", "us", 1},
	} {
		if got := slips(tt.a, tt.b); got != tt.want {
			t.Errorf("%q, %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestUnknown(t *testing.T) {
	for _, tt := range []struct{ words, text, hint string }{
		{"brige", `unknown mode "brige"`, "did you mean bridge?"},
		{"brige hots", `unknown modes "brige", "hots"`, "did you mean bridge, host?"},
		{"bridge,host", `unknown mode "bridge,host"`, "did you mean bridge host?"},
		{"Bridge,hots", `unknown mode "Bridge,hots"`, "did you mean bridge host?"},
		{"moon", `unknown mode "moon"`, "modes are: " + strings.Join(modes, ", ")},
		{"brige moon", `unknown modes "brige", "moon"`, "modes are: " + strings.Join(modes, ", ")},
		{"publish", `unknown mode "publish"`,
			"did you mean publish-nat, publish-proxy or publish-ingress?"},
		{"bridge,moon", `unknown mode "bridge,moon"`, "modes are: " + strings.Join(modes, ", ")},
	} {
		e := &UnknownError{"mode", strings.Fields(tt.words), modes}
		if e.Error() != tt.text || e.Hint() != tt.hint {
			t.Errorf("%s: %s; %s", tt.words, e, e.Hint())
		}
	}
}

func TestPlural(t *testing.T) {
	for what, want := range map[string]string{"mode": "modes", "study": "studies",
		"placement on CPUs": "placements on CPUs", "value of --nodelay": "values of --nodelay"} {
		if got := (&UnknownError{What: what}).plural(); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
}

func TestLongList(t *testing.T) {
	for n, want := range map[int]string{mostListed + 1: "toll modes lists all modes",
		mostListed: "modes are: "} {
		e := &UnknownError{"mode", []string{"moon"}, slices.Repeat([]string{"bridge"}, n)}
		if !strings.HasPrefix(e.Hint(), want) {
			t.Errorf("%d: %q", n, e.Hint())
		}
	}
}

func TestParse(t *testing.T) {
	type name string
	if got, err := Parse("mode", "b", []name{"a", "b"}); got != "b" || err != nil {
		t.Error(got, err)
	}
	var u *UnknownError
	if got, err := Parse("mode", "c", []name{"a", "b"}); got != "" || !errors.As(err, &u) ||
		!slices.Equal(u.Known, []string{"a", "b"}) {
		t.Error(got, err)
	}
}

// Suggestions are known words, few and without repeats.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"brige", "bridge,host", "", "\xff\xfe", "ÄÖ",
		strings.Repeat("o", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, word string) {
		got := Words(word, modes)
		if len(got) > most || len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
			t.Fatalf("%q: %q", word, got)
		}
		for _, w := range got {
			if !slices.Contains(modes, w) {
				t.Fatalf("%q: %q", word, w)
			}
		}
		if slices.Contains(modes, word) && !slices.Equal(got, []string{word}) {
			t.Fatalf("%q is known: %q", word, got)
		}
		_ = (&UnknownError{"mode", []string{word}, modes}).Hint()
	})
}
