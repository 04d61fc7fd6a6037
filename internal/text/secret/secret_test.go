package secret

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func each(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

// codings returns a text as servers may quote it; no list is complete.
func codings(s string) []string {
	back := []byte(s)
	slices.Reverse(back)
	out := []string{s, strings.ToUpper(s)}
	for _, text := range []string{s, string(back)} {
		for _, format := range []string{"%02x", "%02x ", "%02X:", "%02x.", "%%%02x", `\x%02x`, "%03o ",
			`\%03o`, "%d ", "%08b ", "%c\u200b", "%c ", "%c.", "%c-", "%c\n"} {
			out = append(out, each(text, format))
		}
		for _, user := range []string{"", "user:", "Bearer "} {
			out = append(out, base64.StdEncoding.EncodeToString([]byte(user+text)),
				base64.RawURLEncoding.EncodeToString([]byte(user+text)))
		}
	}
	return out
}

var lengths = regexp.MustCompile(`\[\d+ characters\]`)

func TestCodings(t *testing.T) {
	for _, s := range []string{"hunter22", "sk-Test5a8bQ9xT2w", "pässwörd ☃ 😀",
		strings.Repeat("k\xc3\xbf?", 100)} {
		for _, text := range codings(s) {
			got := New("", s).Words("Invalid password <" + text + "> was given")
			rest := lengths.ReplaceAllString(got, "")
			rest = strings.NewReplacer("Invalid password", "", "was given", "", "given", "", Mask,
				"").
				Replace(rest)
			if !strings.HasPrefix(got, "Invalid password") || strings.TrimSpace(rest) != "" {
				t.Errorf("%q: %q is left of %q", s, got, text)
			}
		}
	}
}

func TestWords(t *testing.T) {
	set := New("hunter22").Showing("postgres://app@10.0.0.5/shop",
		"SELECT * FROM orders_2024_archive",
		"meta-llama/Llama-3-8B")
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"model small not found", "model small not found"},
		{"no model meta-llama/Llama-3-8B here", "no model meta-llama/Llama-3-8B here"},
		{"no key for aHVudGVyMjJodW50ZXIyMg== at", "no key for [24 characters] at"},
		{"no model meta-llama/Llama-3-70B here", "no model [22 characters] here"},
		{"Unsupported parameter: 'max_tokens'", "Unsupported parameter: 'max_tokens'"},
		{"request (1231 tokens) exceeds it.", "request (1231 tokens) exceeds it."},
		{`relation "orders_2024_archive" does not exist`,
			`relation "orders_2024_archive" does not exist`},
		{`relation "orders_2023_archive" does not exist`,
			`relation [21 characters] does not exist`},
		{`no pg_hba.conf entry for host "172.17.0.1", user "app", database "shop", no encryption`,
			`no [11 characters] entry for host "172.17.0.1", user "app", database "shop", ` +
				`no encryption`},
		{"from 10.0.0.1 or 10.0.0.2 or 10.0.0.3", "from [28 characters]"},
		{"Login failed for user 'sa'.", "Login failed for user 'sa'."},
		{"key HUNTER22: wrong\n\tkey", "key ***: wrong key"},
		{"so is it on in an or of", "[16 characters]"},
	} {
		if got := set.Words(tt.text); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// Without a secret, texts are only made printable.
func TestNothingToHide(t *testing.T) {
	for _, s := range []Set{{}, New(""), New("", " ")} {
		const text = "no model\x1b meta-llama/Llama-3-70B-Instruct\n"
		const want = `no model\x1b meta-llama/Llama-3-70B-Instruct`
		if got := s.Words(text); got != want {
			t.Errorf("%q", got)
		}
		if got := s.CutWords(text); got != want {
			t.Errorf("cut: %q", got)
		}
	}
	const text, want = "Hunter22, hunter2/x86_64-pc-linux", "***, hunter2/x86_64-pc-linux"
	if got := New("hunter22").Hide(text); got != want {
		t.Errorf("%q", got)
	}
}

// The front of a secret at the end of a text that was cut off is hidden, too.
func TestCutWords(t *testing.T) {
	const s = "correct horse battery"
	for n := shortest; n < len(s); n++ {
		if got := New(s).CutWords("the key: " + s[:n]); got != "the key: ***" {
			t.Errorf("after %d: %q", n, got)
		}
	}
	if got := New(s).Words("the key: " + s[:7]); got != "the key: correct" {
		t.Errorf("a whole text: %q", got)
	}
}

// Replacing a secret of three characters would reveal it.
func TestShortSecrets(t *testing.T) {
	const want = "the message is not shown because it contains the secret"
	if got := New("abc").Words("no ABC here"); got != want {
		t.Errorf("%q", got)
	}
	if got := New("abc").Words("no such user"); got != "no such user" {
		t.Errorf("%q", got)
	}
}

func FuzzWords(f *testing.F) {
	f.Add("hunter22", "user:", " behind")
	f.Add("%25%", `\`, "&amp;")
	f.Add("***.", "k ", "")
	f.Fuzz(func(t *testing.T, s, before, behind string) {
		if len(s) < shortest || strings.Contains(Mask, s) {
			return
		}
		text := before + s + behind
		got := New(s).Words(text)
		if New(s).Words(got) != got && !strings.Contains(got, "[") {
			t.Errorf("%q: changed again: %q", text, got)
		}
		for _, w := range strings.Fields(lengths.ReplaceAllString(got, "")) {
			if len(w) > longestRun+len(opening+closing) && len(bare(w)) > longestRun {
				t.Errorf("%q: %q", text, w)
			}
		}
	})
}
