package cli

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestStamped(t *testing.T) {
	const commit = "e92372f545c8fbd894bb8d9ef68079be8caa9c93"
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"},
			{Key: "vcs.revision", Value: commit},
			{Key: "vcs.time", Value: "2026-11-23T02:02:39Z"},
			{Key: "vcs.modified", Value: modified}}
	}
	tests := []struct {
		name     string
		main     string
		settings []debug.BuildSetting
		version  string
		prints   string
	}{
		{"installed release", "v0.2.0", nil, "0.2.0", "toll 0.2.0\n"},
		{"checkout of a tag", "v0.2.0", vcs("false"), "0.2.0",
			"toll 0.2.0\ncommit " + commit + " of 2026-11-23T02:02:39Z\n"},
		{"checkout of a commit", "v0.0.0-20261123020239-e92372f545c8+dirty", vcs("true"),
			"0.0.0-20261123020239-e92372f545c8+dirty",
			"toll 0.0.0-20261123020239-e92372f545c8+dirty\ncommit " + commit +
				" of 2026-11-23T02:02:39Z, with local changes\n"},
		{"checkout without a version", "(devel)", vcs("true"), "devel-e92372f545c8+dirty",
			"toll devel-e92372f545c8+dirty\ncommit " + commit +
				" of 2026-11-23T02:02:39Z, with local changes\n"},
		{"nothing stamped", "(devel)", nil, "devel", "toll devel\n"},
		{"nothing at all", "", nil, "devel", "toll devel\n"},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			b := stamped(&debug.BuildInfo{Main: debug.Module{Version: tt.main},
				Settings: tt.settings}, true)
			if b.version != tt.version {
				t.Errorf("version %q, want %q", b.version, tt.version)
			}
			var out strings.Builder
			b.print(&out)
			if !strings.HasPrefix(out.String(), tt.prints+"go") {
				t.Errorf("printed %q, want it to begin with %q and Go's version", out.String(),
					tt.prints)
			}
		})
	}
	if b := stamped(nil, false); b.version != "devel" {
		t.Errorf("without build information: %q", b.version)
	}
}
