package pathtest

import (
	"regexp"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
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
}
