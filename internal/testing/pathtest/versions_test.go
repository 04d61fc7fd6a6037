package pathtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
)

// Only programs that the path was built with are noted, and none without a version.
func TestNoteVersions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	t.Setenv(testversions.Env, file)
	for proxy, datapath := range map[string]string{
		"rootlesskit 3.3.0 (transparent), then docker-proxy": "",
		"": "userspace, Open vSwitch 3.1.0",
		"pasta 0.0~git20230309.7c7625d-1, which hangs":   "",
		"toll's own proxy with docker-proxy's algorithm": "veth pair",
	} {
		t.Run("passed", func(t *testing.T) {
			noteVersions(t, &path.Path{Facts: map[string]string{
				"proxy": proxy, "datapath": datapath}})
		})
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"rootlesskit\t3.3.0", "Open vSwitch\t3.1.0",
		"pasta\t0.0~git20230309.7c7625d-1"} {
		if !regexp.MustCompile(`(?m)\t` + want + `\tmodes$`).Match(got) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if lines := regexp.MustCompile(`\n`).FindAll(got, -1); len(lines) != 3 {
		t.Errorf("other notes, too:\n%s", got)
	}
}
