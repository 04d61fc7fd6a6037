package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func percent(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

var encodings = map[string]*base64.Encoding{
	"std": base64.StdEncoding, "raw-std": base64.RawStdEncoding, "url": base64.URLEncoding,
	"raw-url": base64.RawURLEncoding}

// forms returns the forms in which servers quote a secret.
func forms(s string) map[string]string {
	asJSON, _ := json.Marshal(s)
	out := map[string]string{
		"plain":         s,
		"upper":         strings.ToUpper(s),
		"json":          string(asJSON),
		"go":            strconv.Quote(s),
		"html":          html.EscapeString(s),
		"query":         url.QueryEscape(s),
		"path":          url.PathEscape(s),
		"lower-query":   strings.ToLower(url.QueryEscape(s)),
		"percent-lower": percent(s, "%%%02x"),
		"percent-upper": percent(s, "%%%02X"),
		"hex":           percent(s, `\x%02X`),
		"percent-some":  percent(s[:3], "%%%02x") + s[3:],
		"hex-digits":    hex.EncodeToString([]byte(s)),
		"hex-capitals":  strings.ToUpper(hex.EncodeToString([]byte(s))),
		"hex-spaced":    strings.TrimSpace(percent(s, "%02x ")),
		"hex-colons":    strings.TrimSuffix(percent(s, "%02x:"), ":"),
		"reversed":      reversed(s), "reversed-percent": percent(reversed(s), "%%%02x"),
	}
	for name, end := range map[string]string{"feed": "\n", "return": "\r\n", "indented": "\n\t  ",
		"escaped": `\n`, "escaped-return": `\r\n`, "space": " "} {
		_, first := utf8.DecodeRuneInString(s)
		_, last := utf8.DecodeLastRuneInString(s)
		out["lines-after-first-"+name] = s[:first] + end + s[first:]
		out["lines-before-last-"+name] = s[:len(s)-last] + end + s[len(s)-last:]
		out["lines-hex-"+name] = hex.EncodeToString([]byte(s[:3])) + end +
			hex.EncodeToString([]byte(s[3:]))
		mime := base64.StdEncoding.EncodeToString([]byte(s))
		out["lines-base64-"+name] = mime[:4] + end + mime[4:]
	}
	for name, e := range encodings {
		for _, user := range []string{"", "u", "us", "user", "user:", "someone:"} {
			for _, behind := range []string{"", "\n", "!!"} {
				out[fmt.Sprintf("%s of %q and %q", name, user, behind)] = e.EncodeToString(
					[]byte(user + s + behind))
			}
		}
		out[name+" in a URL"] = url.QueryEscape(e.EncodeToString([]byte("user:" + s)))
		out[name+" in lower escapes"] = percent(e.EncodeToString([]byte(s)), "%%%02x")
	}
	return out
}

func TestHide(t *testing.T) {
	for _, s := range []string{"hunter22", `sk-Test"<5/8>&+\9`, "pässwörd ☃ 😀", "%41&=", `\\\\back`,
		"a+b/c?d>>>>~~~~", "x\xff\xfey\x80z", strings.Repeat("k\xc3\xbf?", 100)} {
		set := New("***", "", s)
		for name, form := range forms(s) {
			if !utf8.ValidString(s) && (name == "json" || strings.Contains(name, "go")) {
				continue // they replace bytes that are not UTF-8, so the secret is lost
			}
			text := "no entry for [" + form + "], " + form
			got := set.Hide(text)
			if strings.Trim(strings.NewReplacer("no entry for", "", `"`, "", "[", "", "]", "", ",",
				"", " ", "", "%3d", "", "%3D", "").Replace(got), "*") != "" {
				t.Errorf("%q, %s: %q is left of %q", s, name, got, text)
			}
			if !set.Has(text) {
				t.Errorf("%q, %s: not seen in %q", s, name, text)
			}
		}
	}
}

// Texts without a secret are unchanged.
func TestHideNothing(t *testing.T) {
	for _, text := range []string{"", "hunter2", "unter22", "aHVudGVy", "%68%75%6e",
		strings.Repeat("hunter2 ", 100)} {
		if got := New("***", "hunter22").Hide(text); got != text {
			t.Errorf("%q: %q", text, got)
		}
		if got := (Set{}).HideCut(text); got != text {
			t.Errorf("without a secret, %q: %q", text, got)
		}
	}
}

// The front of a secret at the end of a text that was cut off is hidden, too.
func TestHideCut(t *testing.T) {
	const s = `sk-Test"5/8+\9`
	set := New("***", s)
	for name, form := range map[string]string{"plain": s, "percent": percent(s, "%%%02x"),
		"json": `sk-Test\"5\/8+\\9`, "base64": base64.StdEncoding.EncodeToString([]byte(s))} {
		for n := range len(form) {
			got := set.HideCut("key " + form[:n])
			if shown := strings.TrimPrefix(got, "key "); shown != "***" &&
				shown != form[:min(n, len(shown))] || len(shown) > 4*3 {
				t.Errorf("%s, cut after %d: %q", name, n, got)
			}
		}
	}
	if got := set.Hide("key " + s[:8]); got != "key "+s[:8] {
		t.Errorf("the end of a whole text: %q", got)
	}
}

func FuzzHide(f *testing.F) {
	f.Add("hunter22", "user:", " behind")
	f.Add("%25%", `\`, "&amp;")
	f.Fuzz(func(t *testing.T, s, before, behind string) {
		if len(s) < 4 {
			return
		}
		set := New("\x00", s)
		for _, form := range []string{s, percent(s, "%%%02x"),
			base64.StdEncoding.EncodeToString([]byte(before + s + behind)),
			base64.RawURLEncoding.EncodeToString([]byte(before + s))} {
			got := set.Hide(before + form + behind)
			if !strings.Contains(got, "\x00") ||
				strings.Contains(got, form) && !strings.Contains(before+behind, form) {
				t.Errorf("%q in %q: %q", form, before+form+behind, got)
			}
		}
	})
}
