package cli

import (
	"bytes"
	"context"
	"syscall"
	"testing"
)

// A check that a signal cut short says nothing about the machine.
func TestModesThatAreStopped(t *testing.T) {
	if !mayBuild() {
		t.Skip("network namespaces need root here")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(signaled{syscall.SIGINT})
	var out, said bytes.Buffer
	code := run(ctx, env{stdout: &out, stderr: &said}, []string{"modes"})
	if want := exitSignalled + int(syscall.SIGINT); code != want || out.Len()+said.Len() > 0 {
		t.Errorf("exit code %d, want %d\n%s%s", code, want, out.String(), said.String())
	}
}
