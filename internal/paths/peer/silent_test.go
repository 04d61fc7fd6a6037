package peer

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
)

// A silent ssh must end, even if a child in any process group holds its output.
func TestSilentSSH(t *testing.T) {
	const patience = time.Minute
	for name, script := range map[string]string{
		"alone":            "exec sleep 300",
		"with-a-child":     "sleep 300; true",
		"child-left-group": `setsid sh -c 'echo $$ >"$FILE"; exec sleep 300'; true`,
		"greets":           "echo welcome; sleep 300",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, err := netns.Here()
			if err != nil {
				t.Fatal(err)
			}
			defer here.Close()
			c, err := newConnection(Host{Name: "b"})
			if err != nil {
				t.Fatal(err)
			}
			c.limit = 200 * time.Millisecond
			cmd := exec.Command("sh", "-c", script)
			file := filepath.Join(t.TempDir(), "pid")
			cmd.Env = append(os.Environ(), "FILE="+file)
			began := time.Now()
			err = c.open(t.Context(), here, cmd, func() error { return c.prepare(&Peer{}, nil) })
			if !errors.Is(err, errSilent) || !strings.Contains(err.Error(), "b") {
				t.Errorf("error %v, want %v", err, errSilent)
			}
			if text, err := os.ReadFile(file); err == nil {
				pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
				_ = syscall.Kill(-pid, syscall.SIGKILL) // its group's first process
			}
			if took := time.Since(began); took > patience {
				t.Errorf("it took %s", took)
			}
		})
	}
}
