// Package testgolden compares texts with golden files. It adds the flag -update to tests.
package testgolden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// Updating reports whether the tests write what they would compare with.
func Updating() bool { return *update }

// Check fails the test unless got is the text of a file in testdata. With -update it writes the
// file instead. On a mismatch it leaves NAME.got beside it.
func Check(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		_ = os.Remove(file + ".got") // left by an earlier failure
		return
	}
	if err := os.WriteFile(file+".got", []byte(got), 0o644); err != nil {
		t.Error(err)
	}
	t.Errorf("%s differs; see %s.got, and go test -update once it is right", file, file)
}
