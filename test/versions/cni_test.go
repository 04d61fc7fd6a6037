package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
)

// Ports that CNI's plug-ins publish are no sockets, only rules.
func TestCNI(t *testing.T) {
	if os.Getenv(installsEnv) == "" {
		t.Skip("it builds them: make versions")
	}
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root may publish ports")
	}
	toll, dir := pathtest.Toll(t), t.TempDir()
	const module = "github.com/containernetworking/"
	build := func(dir string, programs ...string) {
		c := exec.Command("go", append([]string{"install"}, programs...)...)
		c.Env = append(os.Environ(), "GOBIN="+dir)
		if out, err := c.CombinedOutput(); err != nil {
			pathtest.SkipOrFail(t, "%v: %s", err, out)
		}
	}
	build(dir, module+"cni/cnitool@v1.3.1")
	for _, c := range []struct{ version, backend string }{
		{"1.0.1", "iptables"}, {"1.10.0", "iptables"}, {"1.10.0", "nftables"},
	} {
		t.Run(c.version+"/"+c.backend, func(t *testing.T) {
			testversions.Ran(t, "CNI plug-ins", c.version, "`toll ports` against clients")
			plugins := filepath.Join(dir, c.version)
			var programs []string
			for _, p := range []string{"main/bridge", "ipam/host-local", "meta/portmap"} {
				programs = append(programs, module+"plugins/plugins/"+p+"@v"+c.version)
			}
			build(plugins, programs...)
			out, err := exec.Command("./cni", toll, filepath.Join(dir, "cnitool"), plugins,
				c.backend).CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Error(err)
			}
		})
	}
}
