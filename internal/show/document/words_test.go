package document

import "testing"

func TestUnbroken(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"bridge: -88 % (-89–-87) of host":   "bridge: -88_% (-89–-87) of host",
		"88 % (87–90), 3 ± 1 ms; 2 × 10 s.": "88_%_(87–90), 3_±_1_ms; 2_×_10_s.",
		"12 kB/s · 3 s/GB":                  "12_kB/s_· 3_s/GB",
		"a % of 3 things":                   "a % of 3 things",
	} {
		nobreak := []rune(want)
		for i, r := range nobreak {
			if r == '_' {
				nobreak[i] = '\u00a0'
			}
		}
		if got := Unbroken(text); got != string(nobreak) {
			t.Errorf("%q: %q", text, got)
		}
	}
}
