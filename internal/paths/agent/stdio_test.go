package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// leaving is an engine that cannot remove what it made.
type leaving struct{ pipes }

var errLeft = errors.New("a container is left")

func (*leaving) Close() error { return errLeft }

// An agent reports what it could not remove, unless the other end has gone.
func TestStdioLeaves(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		bundle []byte
		gone   bool
		says   string
	}{
		"invalid-bundle": {[]byte("no key"), false, errBundle.Error() + "\n" + errLeft.Error() + "\n"},
		"gone":           {key.Bundle(), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(bounded(t), self, stdioArg)
			var said bytes.Buffer
			cmd.Stderr = &said
			in, errIn := cmd.StdinPipe()
			out, errOut := cmd.StdoutPipe()
			if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if _, err := fmt.Fprintf(in, "%d peer b\n%s", len(tt.bundle), tt.bundle); err != nil {
				t.Error(err)
			}
			if tt.gone {
				_ = in.Close()
			}
			_, _ = io.Copy(io.Discard, out)
			if err := cmd.Wait(); (err != nil) != (tt.says != "") || said.String() != tt.says {
				t.Errorf("%v: %q", err, said.String())
			}
		})
	}
}
