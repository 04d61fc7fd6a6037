package agent

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// A container that shares the PID namespace of its machine sees processes that are none of its own.
func TestSitAmongOthers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child",
		"--mount-proc", "sh", "-c",
		`sleep 600 >/dev/null 2>&1 & exec unshare --mount "$0" `+sitArg, self)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case strings.Contains(string(out), "unshare failed"):
		pathtest.SkipOrFail(t, "%s", out)
	case err != nil:
		t.Errorf("it does not end: %v, %s", err, out)
	}
}
