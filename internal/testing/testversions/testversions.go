// Package testversions notes which versions of foreign programs tests have run, for
// docs/versions.md. make versions merges the notes into that page.
package testversions

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Env names the file to which notes are appended; unset: none are made.
const Env = "BRIDGETOLL_TEST_VERSIONS"

// Ran notes that the test has run a version of a program, once the test has passed. what says what
// was run, in a few words. An empty version is not noted.
func Ran(t testing.TB, program, version, what string) {
	file := os.Getenv(Env)
	if file == "" || version == "" {
		return
	}
	t.Cleanup(func() {
		if t.Failed() || t.Skipped() {
			return
		}
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		line := strings.Join([]string{time.Now().UTC().Format(time.DateOnly), program, version,
			what}, "\t")
		if _, err := fmt.Fprintln(f, line); err != nil {
			t.Error(err)
		}
	})
}

var number = regexp.MustCompile(`\d+(?:\.\d+)+(?:[-_.~+\w]*\w)?|\d{4}_\d\d_\d\d[.\w]*`)

// In returns the first version number in a text, or "".
func In(text string) string { return number.FindString(text) }

// Of returns the version of an installed program as it prints it with the arguments, or "" if it
// prints none.
func Of(program string, args ...string) string {
	out, _ := exec.Command(program, args...).CombinedOutput() // some fail where they print it
	return In(string(out))
}
