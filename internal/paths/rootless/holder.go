package rootless

import (
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// HolderOf returns the PID and the name of the slirp4netns or pasta process that has the tap device
// of a network namespace. namespace has the form of netns.ID. The caller needs the right to trace
// that process.
func HolderOf(namespace string) (pid int, program string, err error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, "", err
	}
	for _, p := range all {
		program := programOf(p)
		if program == "" {
			continue
		}
		if ids, err := netns.Held(p.PID); err == nil && slices.Contains(ids, namespace) {
			return p.PID, program, nil
		}
	}
	return 0, "", &path.UnsupportedError{
		Missing: "toll may read no slirp4netns or pasta process that has the rootless network's tap device",
		Remedy:  "run toll as root, outside containers; other network drivers are not measured"}
}

// pasta's process may have the name pasta.avx2 or passt.avx2.
func programOf(p procfs.Proc) string {
	name, err := p.Comm()
	switch {
	case err != nil:
	case name == Slirp4netns:
		return Slirp4netns
	case strings.HasPrefix(name, Pasta), strings.HasPrefix(name, "passt"):
		return Pasta
	}
	return ""
}
