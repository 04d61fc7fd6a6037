package pathtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
)

// enginesEnv is "installed", the default, "all", or some, as in installed,sid; see make
// test-docker.
const enginesEnv = "BRIDGETOLL_ENGINES"

// AllEngines reports whether the environment requests all engines.
func AllEngines() bool { return os.Getenv(enginesEnv) == "all" }

// AsksFor reports whether the environment requests an engine that Engines does not return:
// "podman".
func AsksFor(name string) bool {
	return AllEngines() || slices.Contains(strings.Split(os.Getenv(enginesEnv), ","), name)
}

// Engine is a Docker Engine whose daemons a test may start.
type Engine struct {
	Name string
	root string // "": the installed one
}

// others lists the engines that the scripts of test/docker fetch: those of Debian's suites (26.1.5
// and 28.5.2 as of this writing), and 29.
var others = []struct {
	name, script string
	args         []string
}{
	{"trixie", "fetch", []string{"trixie"}},
	{"sid", "fetch", []string{"sid"}},
	{"29", "build", nil},
}

// Engines returns the Docker Engines to test, and skips the test if only Podman was asked for. If
// an engine cannot be fetched, the test fails but continues with the others.
func Engines(t testing.TB) []Engine {
	t.Helper()
	const here = "installed"
	asked := strings.Split(cmp.Or(os.Getenv(enginesEnv), here), ",")
	known := []string{here, "all", "podman"}
	for _, o := range others {
		known = append(known, o.name)
	}
	for _, name := range asked {
		if !slices.Contains(known, name) {
			t.Fatalf("%s has %q, which is none of %s", enginesEnv, name, strings.Join(known, ", "))
		}
	}
	var engines []Engine
	if AllEngines() || slices.Contains(asked, here) {
		engines = append(engines, Engine{Name: here})
	}
	for _, o := range others {
		if !AllEngines() && !slices.Contains(asked, o.name) {
			continue
		}
		if root, err := brought("docker", o.script, o.name, o.args...); err != nil {
			t.Errorf("no Docker Engine %s: %v", o.name, err)
		} else {
			engines = append(engines, Engine{o.name, root})
		}
	}
	if len(engines) == 0 && !t.Failed() {
		t.Skip("no Docker Engine was asked for")
	}
	return engines
}

// Fetch runs a script of a folder in test, which fetches programs once. It returns the folder that
// contains them as a root file system. The script's arguments are args and that folder.
func Fetch(folder, script string, args ...string) (root string, err error) {
	return brought(folder, script, strings.Join(append([]string{script}, args...), "-"), args...)
}

// root is the script's last argument. The script fetches an engine once.
func brought(folder, script, name string, args ...string) (root string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "bridgetoll", folder, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	top, err := module()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(filepath.Join(top, "test", folder, script),
		append(args, dir)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, "root"), nil
}

func module() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the test's folder")
		}
		dir = up
	}
}

// Env returns the variables that make a process start this engine as dockerd. All engines use the
// installed docker command.
func (e Engine) Env() []string {
	if e.root == "" {
		return nil
	}
	return []string{"PATH=" + e.root + "/usr/sbin:" + e.root + "/usr/bin:" + os.Getenv("PATH")}
}

// Root returns the folder with the root file system of the engine's programs, or "" for the
// installed engine.
func (e Engine) Root() string { return e.root }

// Says returns dockerd's output.
func (e Engine) Says(args ...string) string {
	out, _ := exec.Command(e.file("sbin/dockerd"), args...).CombinedOutput()
	return string(out)
}

// Ran notes the versions of the engine and its containerd, once the test has passed. what says what
// was run, in a few words.
func (e Engine) Ran(t testing.TB, what string) {
	testversions.Ran(t, "Docker Engine", testversions.In(e.Says("--version")), what)
	testversions.Ran(t, "containerd", testversions.Of(e.file("bin/containerd"), "--version"), what)
}

// file returns the engine's program of a folder of /usr.
func (e Engine) file(program string) string {
	if e.root == "" {
		return filepath.Base(program)
	}
	return filepath.Join(e.root, "usr", program)
}
