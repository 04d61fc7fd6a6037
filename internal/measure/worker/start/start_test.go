package start_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pathtest.RemoveToll()
	os.Exit(code)
}

func TestWorkerIsSmall(t *testing.T) {
	initialized := initializedBy(t, worker.Arg)
	if !initialized["github.com/prometheus/procfs"] {
		t.Fatalf("the trace has no package that a worker needs: %v", initialized)
	}
	byToll := initializedBy(t, "version")
	for _, p := range []string{"github.com/microsoft/go-mssqldb", "github.com/moby/moby/client",
		"net/http", "github.com/bridgetoll/bridgetoll/internal/cli"} {
		if !byToll[p] {
			t.Errorf("toll version initializes no %s: the test checks nothing", p)
		}
		if initialized[p] {
			t.Errorf("a worker initializes %s", p)
		}
	}
}

// initializedBy returns the packages that toll with the argument initializes.
func initializedBy(t *testing.T, arg string) map[string]bool {
	t.Helper()
	cmd := exec.Command(pathtest.Toll(t), arg)
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &trace
	_ = cmd.Run() // a worker without a request fails
	out := map[string]bool{}
	for line := range strings.Lines(trace.String()) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "init" {
			out[f[1]] = true
		}
	}
	return out
}

// If any linked function looks methods up by name, as templates do, the linker keeps all methods.
func TestLinkerDropsUnusedMethods(t *testing.T) {
	program, err := os.ReadFile(pathtest.Toll(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"github.com/spf13/cobra.(*Command).ExecuteContext": true,
		"github.com/spf13/cobra.(*Command).SetUsageTemplate": false,
		"text/template.(*state).evalField":                   false} {
		if got := bytes.Contains(program, []byte(name)); got != want {
			t.Errorf("toll contains %s: %t, want %t", name, got, want)
		}
	}
}
