//go:build !arm64

package jail

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// TestFilterOfARM64 runs TestFilter as compiled for arm64, in make test-vm-bpf: for this the standard
// library has to be compiled, too.
func TestFilterOfARM64(t *testing.T) {
	if os.Getenv("BRIDGETOLL_TEST_ARM64") == "" {
		t.Skip("BRIDGETOLL_TEST_ARM64 is not set")
	}
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		pathtest.SkipOrFail(t, "needs qemu-aarch64 (on Debian: qemu-user)")
	}
	program := filepath.Join(t.TempDir(), "jail.test")
	t.Setenv("GOARCH", "arm64")
	pathtest.BuildStatic(t, "test", "-c", "-o", program, ".")
	cmd := exec.Command(emulator, program, "-test.v", "-test.run", "^TestFilter$")
	cmd.Env = append(os.Environ(), "CI=true")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestFilter ") {
		t.Errorf("%v: %s", err, out)
	}
}
