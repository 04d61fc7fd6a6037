package fast

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestUnit(t *testing.T) {
	b, err := os.ReadFile("../../../packaging/toll-fast.service")
	if err != nil {
		t.Fatal(err)
	}
	const ended = "SuccessExitStatus=143" // after SIGTERM, which systemd sends to stop it
	if !testgolden.HasLine(string(b), ended) {
		t.Errorf("without %s a unit that is stopped has failed", ended)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "toll-fast.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(b), "/usr/bin/toll ", self+" ")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput()
	if err != nil || len(strings.TrimSpace(string(out))) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
