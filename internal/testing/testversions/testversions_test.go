package testversions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestIn(t *testing.T) {
	for text, want := range map[string]string{
		"Docker version 28.5.2+dfsg4, build 9aab2b7":       "28.5.2+dfsg4",
		"iperf 3.12 (cJSON 1.7.15)\nLinux 6.18":            "3.12",
		"pasta 0.0~git20230309.7c7625d-1":                  "0.0~git20230309.7c7625d-1",
		"pasta 2025_09_19.623dbf6":                         "2025_09_19.623dbf6",
		"rootlesskit version 1.1.0+dfsg1.":                 "1.1.0+dfsg1",
		"psql (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)": "15.18",
		"no number but 7":                                  "",
	} {
		if got := In(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestRan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	t.Setenv(Env, file)
	t.Run("passed", func(t *testing.T) {
		Ran(t, "iperf3", "3.12", "toll run")
		Ran(t, "iperf3", "", "nothing")
	})
	t.Run("skipped", func(t *testing.T) {
		Ran(t, "iperf3", "3.22", "toll run")
		t.Skip("not here")
	})
	got, err := os.ReadFile(file)
	date, rest, _ := strings.Cut(string(got), "\t")
	if _, e := time.Parse(time.DateOnly, date); err != nil || e != nil ||
		rest != "iperf3\t3.12\ttoll run\n" {
		t.Errorf("%q, %v, %v", got, err, e)
	}
}
