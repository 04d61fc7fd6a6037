package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// Someone who gives --try a file of commands is told of --try @FILE.
func TestTryOfFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "firewall.sh")
	if err := os.WriteFile(file, []byte("true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		commands string
		code     int
		hint     string
	}{
		{file, notFound, "toll ports --try @" + file},
		{file, 1, ""},
		{"nonsense", notFound, ""},
	} {
		try := tryFlags{commands: c.commands}
		err := try.failed(&ports.Report{Tried: &ports.Tried{Commands: c.commands, Code: c.code}})
		f, ok := errors.AsType[*failure](err)
		if !ok || f.code != exitFailed || f.hint != c.hint || (f.err != nil) != (c.hint != "") {
			t.Errorf("%s with exit code %d: %+v", c.commands, c.code, f)
		}
	}
}
