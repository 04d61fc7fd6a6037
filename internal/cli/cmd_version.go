package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is written to every results file.
var version = stamped(debug.ReadBuildInfo()).version

type build struct {
	// version is "0.1.0", "0.0.0-20260102030405-0123456789ab+dirty" for a commit without a tag, or
	// "devel".
	version  string
	revision string // the commit, if built in a checkout
	time     string
	dirty    bool // the checkout had uncommitted changes
}

// stamped returns what the build was stamped with. `go install …@version` stamps the module's
// version, a build in a checkout the commit. `go run`, `go test` and -buildvcs=false stamp neither.
func stamped(info *debug.BuildInfo, ok bool) build {
	b := build{version: "devel"}
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.time":
			b.time = s.Value
		case "vcs.modified":
			b.dirty = s.Value == "true"
		}
	}
	if v, is := strings.CutPrefix(info.Main.Version, "v"); is {
		b.version = v
	} else if b.revision != "" {
		b.version += "-" + b.revision[:min(12, len(b.revision))]
		if b.dirty {
			b.version += "+dirty"
		}
	}
	return b
}

func (b build) print(w io.Writer) {
	say(w, "toll "+b.version)
	if b.revision != "" {
		changes := ""
		if b.dirty {
			changes = ", with local changes"
		}
		say(w, fmt.Sprintf("commit %s of %s%s", b.revision, cmp.Or(b.time, "unknown time"),
			changes))
	}
	say(w, fmt.Sprintf("%s, %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH))
}

func newVersion(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version, the commit and the Go that built it",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			stamped(debug.ReadBuildInfo()).print(e.stdout)
			return nil
		},
	}
}
