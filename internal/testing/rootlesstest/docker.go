package rootlesstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// Docker is a rootless Docker Engine of the machine's user.
type Docker struct {
	Host string // DOCKER_HOST

	machine *Machine
	service
}

// scriptOf returns dockerd-rootless.sh of an engine, or "".
func scriptOf(e pathtest.Engine) string {
	for _, dir := range []string{"/usr/share/docker.io/contrib", "/usr/bin"} {
		file := filepath.Join(e.Root(), dir, "dockerd-rootless.sh")
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

// Docker starts an engine as Docker's own script does, with dockerd's flags. Variables such as
// DOCKERD_ROOTLESS_ROOTLESSKIT_NET=pasta choose its network. It ends with the machine.
func (m *Machine) Docker(t testing.TB, e pathtest.Engine, variables []string,
	flags ...string) *Docker {
	t.Helper()
	script := scriptOf(e)
	if script == "" {
		pathtest.SkipOrFail(t, "this Docker has no dockerd-rootless.sh")
	}
	for _, program := range []string{"rootlesskit", "slirp4netns"} {
		if _, err := exec.LookPath(program); err != nil {
			pathtest.SkipOrFail(t, "%v: make deps", err)
		}
	}
	if root := e.Root(); root != "" { // in a folder that only root may enter
		at := m.Home + "/engine"
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := m.Root("mount", "--bind", root, at).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		script = at + strings.TrimPrefix(script, root)
		m.prefer(at + "/usr/bin")
		m.prefer(at + "/usr/sbin")
	}
	d := &Docker{Host: "unix://" + m.Runtime + "/docker.sock", machine: m,
		service: service{log: m.Home + "/dockerd.log"}}
	cmd := m.Command("env", slices.Concat(variables,
		[]string{script, "--data-root", m.Home + "/docker",
			"--pidfile", m.Runtime + "/docker.pid", "--exec-root", m.Runtime + "/docker"}, flags)...)
	d.start(t, "rootless dockerd", cmd, func() bool { return d.Command("info").Run() == nil })
	return d
}

// Command returns a docker command of the user's.
func (d *Docker) Command(args ...string) *exec.Cmd {
	return d.machine.Command("docker", append([]string{"-H", d.Host}, args...)...)
}
