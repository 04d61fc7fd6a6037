package testgolden

import (
	"path/filepath"
	"testing"
)

func TestStable(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"dial 127.0.0.1:38081: refused, [::1]:5432, localhost:80": "dial 127.0.0.1:PORT: refused, [::1]:PORT, localhost:80",
		"open " + filepath.Join(dir, "a") + ": gone":              "open DIR/a: gone",
		"192.0.2.1:5432": "192.0.2.1:5432",
	} {
		if got := Stable(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
