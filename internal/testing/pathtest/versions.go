package pathtest

import (
	"debug/buildinfo"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
)

// builtBy matches the programs that a path's facts name, with their versions.
var builtBy = regexp.MustCompile(
	`\b(docker-proxy|Open vSwitch|pasta|rootlesskit|rootlessport|slirp4netns) (\d[^\s,;)]*)`)

// noteVersions notes the programs that the path was built with, once the test has passed.
func noteVersions(t testing.TB, p *path.Path) {
	for _, fact := range []string{"proxy", "datapath"} {
		for _, m := range builtBy.FindAllStringSubmatch(p.Facts[fact], -1) {
			testversions.Ran(t, m[1], m[2], "modes")
		}
	}
	for _, h := range p.Hops {
		if h.Kind == mode.HopGvisor {
			testversions.Ran(t, string(mode.GvisorTapVsock), gvisor(), "modes")
		}
	}
}

// gvisor returns the version of gvisor-tap-vsock in the RootlessKit in PATH, or "".
func gvisor() string {
	file, err := exec.LookPath("rootlesskit")
	if err != nil {
		return ""
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == "github.com/containers/gvisor-tap-vsock" {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return ""
}
