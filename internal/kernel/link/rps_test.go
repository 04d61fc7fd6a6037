package link

import "testing"

func TestMask(t *testing.T) {
	for list, want := range map[string]string{
		"0":          "1",
		"0-1":        "3",
		"0-31":       "ffffffff",
		"0-32":       "1,ffffffff",
		"0-63":       "ffffffff,ffffffff",
		"0,33":       "2,00000001",
		"64":         "1,00000000,00000000",
		"0-3,8-9,40": "100,0000030f",
		"":           "",
		"a":          "",
		"3-1":        "",
		"-1":         "",
		"0-99999999": "",
	} {
		got, err := mask(list)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", list, got, err, want)
		}
	}
}
